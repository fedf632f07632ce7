// Registering operators needs the real one, which takes some seconds to compile. It is included where it is needed.
#pragma once
