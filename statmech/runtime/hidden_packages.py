"""Detection of another `simulate`, `theory` or `figures` that is imported instead of our package.

A script's folder, or a notebook's, comes first in `sys.path`, so that a file of this name wins over the package. Other
packages of these names can be installed, too: pip merges their files with ours, in one folder.
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
    if origin is None or (Path(origin).resolve().parent == HOME / package and _is_ours(Path(origin))):
        return None
    return Path(origin)


def _is_ours(file: Path) -> bool:
    """Whether a file says in its first sentence that it is of statmech."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return "statmech" in opened.readline()
    except OSError:  # in an archive
        return True


def message(package: str, file: Path) -> str:
    """A sentence that states the problem and its solution."""
    if file.resolve().parent == HOME / package:
        other = f"another package `{package}` was installed over that of statmech, in {file.parent}"
        return f"{other}: uninstall {package} and statmech, and install statmech again"
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
