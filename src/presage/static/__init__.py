"""Static reports: what is known about a kernel from compiling it, without a device."""
