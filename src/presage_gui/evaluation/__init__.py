"""Evaluate critics: offline on recorded states with right and wrong steps, and live in the agent loop."""
