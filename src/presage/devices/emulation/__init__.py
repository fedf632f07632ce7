"""Runs GPU kernels on the CPU to check what they compute. It says nothing about their speed."""
