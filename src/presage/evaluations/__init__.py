"""Evaluation: the suites that produce all published numbers about forecasters."""
