"""Policies decide whether to trust a forecast or to measure the kernel."""
