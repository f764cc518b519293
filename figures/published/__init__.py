"""Published figures, in folders by subject: one file per figure, each a pure `draw(simulation, theory) -> Figure`."""
