"""Former names of keys, variables and coordinates, which configs and stores of earlier versions have.

A kind of scenario lists them in `FORMER`. Names are translated where a config or a store is read: all else knows the
present ones only. Random numbers are derived from the former ones: a change of name moves none of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from statmech.errors import ScenarioError


class RenamedWarning(FutureWarning):
    """A former name has been read; the message states the present one."""


def warn_of(former: Iterable[str], names: Mapping[str, str]) -> None:
    """Warn, once per process, of each of these former names."""
    for name in former:
        warnings.warn(f"`{name}` is called `{names[name]}` now; the former name was read", RenamedWarning, stacklevel=1)


def present(config: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A config with the present names of its keys, also of those in `zip`; `names` has them by their former ones.

    Raises `ScenarioError` for a key that is given by both names.

    >>> present({"eta": 1, "zip": [{"K": [1, 2], "M": [2, 3]}]}, {"sigma": "noise"})
    {'eta': 1, 'zip': [{'K': [1, 2], 'M': [2, 3]}]}
    """
    if not any(names.keys() & group.keys() for group in (config, *zip_groups(config))):
        return dict(config)
    found = _renamed(config, names)
    if "zip" in config:
        found["zip"] = [_renamed(group, names) for group in zip_groups(config)]
    return found


def _renamed(group: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    for former in names.keys() & group.keys():
        if names[former] in group:
            raise ScenarioError([((former,), f"is called {names[former]} now, which is given as well")])
    warn_of(names.keys() & group.keys(), names)
    return {names.get(name, name): value for name, value in group.items()}


def zip_groups(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The groups of parallel axes in a config."""
    groups = config.get("zip", ())
    yield from (
        group for group in (groups if isinstance(groups, list | tuple) else [groups]) if isinstance(group, dict)
    )


def in_former_names(names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names that random numbers are derived from.

    >>> in_former_names({"sigma": "noise"}, {"noise": 0.1, "eta": 1.0})
    {'sigma': 0.1, 'eta': 1.0}
    """
    former = {now: before for before, now in names.items()}
    return {former.get(name, name): value for name, value in values.items()}
