"""The explorer inside a notebook: `statmech.explore("ensemble", K=3)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import panel as pn

from figures.explorer.page import Page, named, opening, started
from figures.explorer.settings import pages
from statmech import config
from statmech.errors import ConfigError
from statmech.results.results import Results
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.page import View, without_page
from statmech.scenarios.registry import scenario_from


def explore(scenario: AbstractScenario | Results | str | Path | None, overrides: dict[str, Any]) -> Any:
    """Return controls and charts of a scenario or of results (`statmech.explore`)."""
    pn.extension("mathjax")  # loads the libraries into a notebook, and has no visible effect elsewhere
    if isinstance(scenario, Results):
        return Page(stored=scenario, inline=True).inline_view()
    return Page(*_opened(scenario, overrides), inline=True).inline_view()


def _opened(given: AbstractScenario | str | Path | None, overrides: dict[str, Any]) -> tuple[Any, None, View]:
    """Return the arguments of a page: no scenario, no results, and the view of the given source."""
    if given is None:
        choice = next(iter(pages()))
        start = started(choice, pages()[choice].view)
        return None, None, started(choice, _with(start, overrides))
    opened_scenario = given if isinstance(given, AbstractScenario) else config.load(given, data=True)
    if overrides:
        opened_scenario = scenario_from({**opened_scenario.config(), **overrides})
    if why := without_page(opened_scenario):
        raise ConfigError(why)
    name = "" if isinstance(given, AbstractScenario) else config.shipped_name(given)
    return None, None, opening(opened_scenario, named(opened_scenario, name))[0]


def _with(view: View, overrides: dict[str, Any]) -> View:
    from dataclasses import replace

    return replace(view, config={**view.config, **overrides})
