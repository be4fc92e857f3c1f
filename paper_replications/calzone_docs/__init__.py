"""The documentation of the calzone package."""
