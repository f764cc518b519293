"""Optional dependencies, installed as extras by pip, and the error for a missing library."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from statmech.errors import StatmechError

CHECKOUT_FOLDER = Path(__file__).resolve().parents[2]


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
    statmech.runtime.extras.MissingExtraError: a chart needs no_such_module: pip install 'statmech[explore]'
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(f"{feature} needs {module}: {get_install_command(extra)}", name=module)
