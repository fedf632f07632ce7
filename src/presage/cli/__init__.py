"""The command line: one file per command, no logic. Results go to stdout, messages to stderr."""
