"""Networks of two layers that learn online: equations, plateaus, stationary states, escape times."""
