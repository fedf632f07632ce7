"""The catalogue: one room per operation family, each problem in its folder beside its seed kernels."""
