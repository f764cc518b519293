"""Detection of a `simulate.py`, `theory.py` or `figures.py` in the working folder, imported instead of our package.

A script's folder, or a notebook's, comes first in `sys.path`, so such a file wins over the package of the same name.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

from statmech.errors import StatmechError

PACKAGES = ("simulate", "theory", "figures")
HOME = Path(__file__).resolve().parents[2]


class ShadowedError(StatmechError, ImportError):
    """A file of the user hides one of our packages; the message names it."""


def shadow_of(package: str) -> Path | None:
    """The file that Python would import instead of one of our packages, or has imported."""
    known = sys.modules.get(package)
    origin = getattr(find_spec(package), "origin", None) if known is None else getattr(known, "__file__", None)
    if origin is None or Path(origin).resolve().parent == HOME / package:
        return None
    return Path(origin)


def message(package: str, file: Path) -> str:
    """A sentence that states the problem and its solution."""
    own = file.parent if file.name == "__init__.py" else file
    return f"{own} hides the package `{package}` of statmech: rename {own.name}, and restart Python"


def warn_of_shadowed() -> None:
    """Warn of every file that hides one of our packages."""
    for package in PACKAGES:
        if file := shadow_of(package):
            warnings.warn(message(package, file), UserWarning, stacklevel=3)


def check_packages(*packages: str) -> None:
    """Raise `ShadowedError`, with the file to rename, if one of these packages, or of all, is hidden."""
    for package in packages or PACKAGES:
        if file := shadow_of(package):
            raise ShadowedError(message(package, file))
