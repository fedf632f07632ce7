"""Train language models to forecast: recordings become questions, and a model learns calibrated answers to them."""
