"""What an agent can do: a file for each tool, with what the agent is told and what carries it out."""
