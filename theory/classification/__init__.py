"""Theory of the kinds in `statmech.classification`."""
