"""Static reports: what compiling a kernel tells, with no device."""
