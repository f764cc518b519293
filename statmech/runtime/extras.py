"""Optional dependencies, which the extras of `pip install` bring, and the sentence where one is missing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from statmech.errors import StatmechError

FOLDER = Path(__file__).resolve().parents[2]


class MissingExtraError(StatmechError, ModuleNotFoundError):
    """A library that is not installed; the message gives the command that installs it."""


def install(extra: str) -> str:
    """The command that installs an extra of statmech: of this checkout, if it is one.

    >>> install("explore")[:11]
    'pip install'
    """
    if (FOLDER / "pyproject.toml").is_file():
        return f"pip install -e '.[{extra}]' in {FOLDER}"
    return f"pip install 'statmech[{extra}]'"


def require(what: str, extra: str, *modules: str) -> None:
    """Raise `MissingExtraError` for the first of these modules that is not installed.

    Parameters
    ----------
    what
        The part of statmech that needs them, as the subject of a sentence.
    extra
        The extra that brings them.
    modules
        Names of modules.

    Examples
    --------
    >>> require("this test", "test", "pytest")
    >>> require("a chart", "explore", "no_such_module")     # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    statmech.runtime.extras.MissingExtraError: a chart needs no_such_module: pip install 'statmech[explore]'
    """
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(f"{what} needs {module}: {install(extra)}", name=module)
