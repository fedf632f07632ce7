"""The tools: one file for each, with its description for the agent and its implementation."""
