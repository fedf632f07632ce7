"""Stencils: every point of a grid from the points around it."""
