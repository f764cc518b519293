"""Scenarios: one file per kind, with all that is true of the kind on its class, and one registry.

The names of `__init__.pyi` are all that a kind outside the package needs (docs/howto/own_scenario.md).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
