"""The keys of a config: their types and checks, sweep axes, recorded variables and error messages.

`__init__.pyi` lists the names that a kind outside the package needs (docs/howto/own_scenario.md).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
