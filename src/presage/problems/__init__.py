"""Problems: what a kernel computes, the cases it is checked and timed on, and how its outputs are compared."""
