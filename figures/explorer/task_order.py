"""A menu of protocols for the order of tasks, with a slider for the fraction of replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figures.explorer import settings
from figures.explorer.forms import FormMenu, KeyForm, SliderSpec
from statmech.controls import OPTIMAL_KEYWORD, ControlFunction
from statmech.protocols import (
    BlockedProtocol,
    InterleavedProtocol,
    OptimalProtocol,
    ReplayProtocol,
    TaskProtocol,
    protocol_from_config,
)

REPLAY_FRACTIONS = tuple(round(0.05 * step, 2) for step in range(1, 20))
TWO_BLOCK_PROTOCOL_KEYS = ("switch",)  # used by protocols with two blocks


def _make_protocol_matcher(kind: type[TaskProtocol]) -> Callable[[Any], tuple[Any, ...] | None]:
    """Return a function that gives () (no sliders) for a protocol of this kind and None for any other."""
    return lambda protocol: () if type(protocol) is kind else None


def _get_replay_fraction(protocol: TaskProtocol) -> tuple[Any, ...] | None:
    """Return the fraction of replay if it is constant, and otherwise None."""
    if type(protocol) is not ReplayProtocol or isinstance(protocol.share, ControlFunction):
        return None
    return (protocol.share,)


PROTOCOL_MENU_FORMS = {  # keys are names in a config
    "blocked": KeyForm(
        "blocked", (), lambda: "blocked", _make_protocol_matcher(BlockedProtocol), TWO_BLOCK_PROTOCOL_KEYS
    ),
    "replay": KeyForm(
        "replay",
        (SliderSpec("fraction", REPLAY_FRACTIONS, 0.1),),
        lambda fraction: {"replay": fraction},
        _get_replay_fraction,
        TWO_BLOCK_PROTOCOL_KEYS,
    ),
    "interleaved": KeyForm("interleaved", (), lambda: "interleaved", _make_protocol_matcher(InterleavedProtocol)),
    OPTIMAL_KEYWORD: KeyForm(
        "optimal replay", (), lambda: OPTIMAL_KEYWORD, _make_protocol_matcher(OptimalProtocol), TWO_BLOCK_PROTOCOL_KEYS
    ),
}


def make_protocol_menu(kind_name: str, config: dict[str, Any]) -> FormMenu:
    """Return the menu of the protocols of a page."""
    forms = {name: PROTOCOL_MENU_FORMS[name] for name in settings.get_page_settings(kind_name).protocols}
    if config.get("switch") is None and OPTIMAL_KEYWORD in forms:  # optimal replay needs no switch
        forms[OPTIMAL_KEYWORD] = forms[OPTIMAL_KEYWORD]._replace(form_only_keys=())
    return FormMenu(settings.PROTOCOL_KEY, forms, config, "blocked", protocol_from_config)
