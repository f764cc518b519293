"""Published figures: one file per figure, each a pure `draw(simulation, theory) -> Figure`."""
