#pragma once
#include <presage_host.h>
