"""The kinds of scenarios, one file each, and the choice of the kind that a config describes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
