// Registering operators needs the real one, which takes long to compile.
#pragma once
