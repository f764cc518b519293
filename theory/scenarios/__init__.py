"""How each kind of scenario is solved: one file per kind, of the same name as in `statmech.scenarios`."""
