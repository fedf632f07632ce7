"""Training language models to forecast: recordings become questions, and a model learns to answer them honestly."""
