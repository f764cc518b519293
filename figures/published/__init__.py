"""Published figures, grouped in folders by subject.

Each figure is one file with a pure function `draw(simulation, theory) -> Figure`.
"""
