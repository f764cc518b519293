"""Two-layer networks that learn online: equations, plateaus, stationary states, escape times."""
