"""Policies: whether to trust a forecast, or to ask the device."""
