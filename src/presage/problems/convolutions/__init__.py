"""Convolutions, dense and depthwise."""
