"""A client for any OpenAI-compatible endpoint: structured answers, retries, cost, cache. It knows nothing of
forecasts."""
