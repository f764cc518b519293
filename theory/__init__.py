"""Theory of statmech for N -> infinity: order-parameter equations, replica theory, and errors of ensembles."""

import lazy_loader

# names of __init__.pyi are imported on first use: a run needs only the equations of its own kind
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
