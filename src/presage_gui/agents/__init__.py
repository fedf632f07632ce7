"""Agents that come with the package: scripted ones, for tests and experiments."""
