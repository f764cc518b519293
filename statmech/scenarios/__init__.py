"""Scenarios: one file per kind, with all that is true of the kind on its class, and one registry."""
