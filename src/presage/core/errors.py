"""The one exception that reaches a person: its message says what is wrong and what to do about it."""


class PresageError(Exception):
    """A mistake of the caller (a bad file, flag or value), explained in the message; commands exit with 2."""
