"""Property tests draw the same examples everywhere and have no deadline: a busy machine must not fail them."""

from hypothesis import HealthCheck, settings

settings.register_profile("presage", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("presage")
