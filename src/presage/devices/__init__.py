"""Device: a place where kernels compile and run, and the trusted measurement that all of them share."""
