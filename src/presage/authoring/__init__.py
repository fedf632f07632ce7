"""Templates for new problems, forecasters and policies, and checks for their authors. The checks need no GPU."""
