"""Plugins: the parts that have a name on the command line. Each part is an entry point of an installed package."""
