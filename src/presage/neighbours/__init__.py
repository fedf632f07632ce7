"""Interfaces to other projects: evaluators for evolutionary searches, files and a strategy for Kernel Tuner, data sets
of FlashInfer-Bench, and KernelBench's score. Their packages are not needed."""
