"""How good a critic is: on recorded states with right and wrong steps, and in the loop."""
