"""Evaluation: the suites that produce every number we publish about forecasters."""
