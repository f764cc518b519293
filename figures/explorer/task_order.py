"""The order of tasks as a menu of protocols, with a slider for the fraction of replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figures.explorer import settings
from figures.explorer.forms import Form, FormMenu, Slider
from statmech.controls import OPTIMAL, Control
from statmech.protocols import BestShare, Blocked, Interleaved, Protocol, Replay, protocol_from

SHARES = tuple(round(0.05 * step, 2) for step in range(1, 20))
SWITCHED = ("switch",)  # used by protocols with two blocks


def _one_of(kind: type[Protocol]) -> Callable[[Any], tuple[Any, ...] | None]:
    """Return a function that gives no slider values for this kind of protocol, and None for others."""
    return lambda protocol: () if type(protocol) is kind else None


def _share(protocol: Protocol) -> tuple[Any, ...] | None:
    """Return the fraction of replay if it is constant, and otherwise None."""
    if type(protocol) is not Replay or isinstance(protocol.share, Control):
        return None
    return (protocol.share,)


FORMS = {  # keys are names in a config
    "blocked": Form("blocked", (), lambda: "blocked", _one_of(Blocked), SWITCHED),
    "replay": Form(
        "replay", (Slider("fraction", SHARES, 0.1),), lambda fraction: {"replay": fraction}, _share, SWITCHED
    ),
    "interleaved": Form("interleaved", (), lambda: "interleaved", _one_of(Interleaved)),
    OPTIMAL: Form("optimal replay", (), lambda: OPTIMAL, _one_of(BestShare), SWITCHED),
}


def protocol_menu(choice: str, config: dict[str, Any]) -> FormMenu:
    """Return the menu of the protocols of a page."""
    forms = {name: FORMS[name] for name in settings.page_of(choice).protocols}
    if config.get("switch") is None and OPTIMAL in forms:  # optimal replay without a switch
        forms[OPTIMAL] = forms[OPTIMAL]._replace(keys=())
    return FormMenu(settings.PROTOCOL, forms, config, "blocked", protocol_from)
