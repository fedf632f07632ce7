"""Forecasters: what speedup to expect of a kernel that was not measured. A new forecaster is one file that implements
`base.Forecaster`."""
