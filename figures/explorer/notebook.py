"""The explorer inside a notebook: `statmech.explore("ensemble", K=3)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import panel as pn

from figures.explorer.page import ExplorerPage, complete_view, make_opening_view, named
from figures.explorer.pages import View, explain_missing_page
from figures.explorer.settings import get_page_settings_by_kind
from statmech.config import config_files
from statmech.errors import ConfigError
from statmech.keys.scenario import AbstractScenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results.results import Results


def explore(scenario: AbstractScenario | Results | str | Path | None, overrides: dict[str, Any]) -> Any:
    """Return controls and charts of a scenario or of results (`statmech.explore`)."""
    pn.extension("mathjax")  # needed in a notebook, without effect elsewhere
    if isinstance(scenario, Results):
        return ExplorerPage(stored=scenario, inline=True).make_notebook_view()
    return ExplorerPage(*_make_page_arguments(scenario, overrides), inline=True).make_notebook_view()


def _make_page_arguments(
    source: AbstractScenario | str | Path | None, overrides: dict[str, Any]
) -> tuple[Any, None, View]:
    """Return the arguments of `ExplorerPage`: no scenario, no stored results, and the view of a source."""
    if source is None:
        choice = next(iter(get_page_settings_by_kind()))
        start = complete_view(choice, get_page_settings_by_kind()[choice].view)
        return None, None, complete_view(choice, _override_config(start, overrides))
    opened_scenario = source if isinstance(source, AbstractScenario) else config_files.load(source, data=True)
    if overrides:
        opened_scenario = scenario_from({**opened_scenario.config(), **overrides})
    if why := explain_missing_page(opened_scenario):
        raise ConfigError(why)
    name = "" if isinstance(source, AbstractScenario) else config_files.get_shipped_config_name(source)
    return None, None, make_opening_view(opened_scenario, named(opened_scenario, name))[0]


def _override_config(view: View, overrides: dict[str, Any]) -> View:
    from dataclasses import replace

    return replace(view, config={**view.config, **overrides})
