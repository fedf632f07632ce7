"""The agents of this package, for tests and experiments: scripted and replayed."""
