"""What every test stands on: bounded searches, and no surprise from a slow machine."""

from hypothesis import HealthCheck, settings

# A slow machine must not fail a property; how many examples a property gets is its own choice.
settings.register_profile("oncelog", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("oncelog")
