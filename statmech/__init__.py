"""Define a learning model once, simulate it (`simulate`), solve it (`theory`), and overlay the two (`figures`)."""

from importlib import import_module
from typing import Any

import lazy_loader

from statmech.runtime.installed_packages import SHADOWABLE_PACKAGES, check_shadowing, warn_about_shadowing

warn_about_shadowing()

__version__ = "0.1.0"

# names of __init__.pyi are imported on first use: `statmech --help` must not wait for numpy and pydantic
_imported, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += SHADOWABLE_PACKAGES


def __getattr__(name: str) -> Any:
    if name in SHADOWABLE_PACKAGES:
        check_shadowing(name)
        return import_module(name)
    return _imported(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
