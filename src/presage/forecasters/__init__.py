"""Forecasters: what speedup to expect of a kernel that nobody has measured. A new one is one file that implements
`base.Forecaster`."""
