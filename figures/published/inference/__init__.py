"""Figures of message passing."""
