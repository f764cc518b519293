"""Theory of each kind of scenario: one module per kind, with the same name as in `statmech.scenarios`."""
