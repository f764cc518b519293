"""Scenarios: a class in a file of its own for each kind, and a registry of all kinds.

`__init__.pyi` lists all names that a kind outside the package needs (docs/howto/own_scenario.md).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
