"""How each kind of scenario is simulated: one file per kind, of the same name as in `statmech.scenarios`."""
