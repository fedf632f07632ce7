"""What other projects read and write: evaluators for evolutionary searches, Kernel Tuner's files and strategies,
FlashInfer-Bench's definitions, solutions and traces, and KernelBench's score. None of their packages is needed."""
