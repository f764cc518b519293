"""Panels, axes and averages that several published figures share; a figure itself is a file of the folder above."""
