"""A client for any OpenAI-compatible endpoint: structured answers, retries, cost and cache. It does not depend on
forecasts."""
