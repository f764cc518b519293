"""Checks of installed packages: missing optional dependencies, and modules that hide our packages.

Optional dependencies are installed as extras by pip. The error for a missing library gives the command.

Hidden packages: the folder of a script or notebook comes first in `sys.path`, so that a file named `simulate`, `theory`
or `figures` takes precedence over our package of this name. Other packages of these names can be installed as well: pip
merges their files with ours, in one folder.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

from statmech.errors import StatmechError

CHECKOUT_FOLDER = Path(__file__).resolve().parents[2]
SHADOWABLE_PACKAGES = ("simulate", "theory", "figures")


class MissingExtraError(StatmechError, ModuleNotFoundError):
    """Error for a library that is not installed, with the command that installs it."""


def get_install_command(extra: str) -> str:
    """Return the command that installs an extra of statmech, from this checkout if there is one.

    >>> get_install_command("explore")[:11]
    'pip install'
    """
    if (CHECKOUT_FOLDER / "pyproject.toml").is_file():
        return f"pip install -e '.[{extra}]' in {CHECKOUT_FOLDER}"
    return f"pip install 'statmech[{extra}]'"


def require_modules(feature: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtraError` for the first of these modules that is not installed.

    Parameters
    ----------
    feature
        The part of statmech that needs the modules, as the subject of a sentence.
    extra
        The extra that installs the modules.
    modules
        Names of modules.

    Examples
    --------
    >>> require_modules("this test", "test", "pytest")
    >>> require_modules("a chart", "explore", "no_such_module")     # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    statmech.runtime.installed_packages.MissingExtraError: a chart needs no_such_module: pip install 'statmech[explore]'
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(f"{feature} needs {module}: {get_install_command(extra)}", name=module)


class ShadowedError(StatmechError, ImportError):
    """Error for a user's file that hides one of our packages. The message names the file."""


def find_shadowing_file(package: str) -> Path | None:
    """Return the file that Python would import, or has imported, instead of one of our packages."""
    module = sys.modules.get(package)
    origin = getattr(find_spec(package), "origin", None) if module is None else getattr(module, "__file__", None)
    if origin is None or (
        Path(origin).resolve().parent == CHECKOUT_FOLDER / package and _is_statmech_file(Path(origin))
    ):
        return None
    return Path(origin)


def _is_statmech_file(file: Path) -> bool:
    """Return True if the first line of an installed file mentions statmech."""
    try:
        with open(file, encoding="utf-8", errors="replace") as source_file:
            return "statmech" in source_file.readline()
    except OSError:  # the file is inside an archive
        return True


def format_shadow_message(package: str, file: Path) -> str:
    """Return a message that explains why a package is hidden, and the remedy."""
    if file.resolve().parent == CHECKOUT_FOLDER / package:
        problem = f"another package `{package}` was installed over the package of statmech, in {file.parent}"
        return f"{problem}: uninstall {package} and statmech, and install statmech again"
    user_file = file.parent if file.name == "__init__.py" else file
    return f"{user_file} hides the package `{package}` of statmech: rename {user_file.name}, and restart Python"


def warn_about_shadowing() -> None:
    """Warn about every file that hides one of our packages."""
    for package in SHADOWABLE_PACKAGES:
        if file := find_shadowing_file(package):
            warnings.warn(format_shadow_message(package, file), UserWarning, stacklevel=3)


def check_shadowing(*packages: str) -> None:
    """Raise `ShadowedError` if one of these packages is hidden. By default all packages are checked."""
    for package in packages or SHADOWABLE_PACKAGES:
        if file := find_shadowing_file(package):
            raise ShadowedError(format_shadow_message(package, file))
