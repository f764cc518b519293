"""Theory of each kind of scenario: one file per kind, of the same name as in `statmech.scenarios`."""
