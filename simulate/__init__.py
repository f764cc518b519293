"""Plays a scenario out: students learn, example by example, at finite N."""

from simulate.run import run as run
