"""One client for any OpenAI-compatible endpoint: structured answers, retries, cost, cache. Knows no forecasts."""
