"""The pages of several tasks: a protocol is chosen, the switch dragged, and the shares of the tasks are drawn below."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("panel", reason="the extra [explore] is not installed")

from figures.explorer import link, page_theory, settings
from statmech import config

WARNED = pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")  # Panel's own, of its downloads
pytestmark = [pytest.mark.quick, WARNED]


@pytest.fixture
def opened():
    """Opens the page of a config, whose simulation never starts."""
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import Page, named

    pages = []

    def open_(name, overrides=()):
        scenario, document = config.load(name, [*overrides]), Document()
        with set_curdoc(document):
            made = Page(scenario, view=named(scenario, name))
            made.view().server_doc(document)
        made.source.clock.later = lambda *_: None
        pages.append(made)
        made.source.update()
        return made

    yield open_
    for made in pages:
        made.close()


def protocol(page, name):
    """Choose a protocol, and return its visible sliders."""
    menu = page.source.menus[1]
    menu.menu.value = name
    return [slider for slider in menu.widgets[1:] if slider.visible]


@pytest.mark.slow
def test_the_switch_is_dragged_and_both_errors_and_the_shares_below_them_change_there(opened):
    page = opened("replay", ["t={linspace: [0, 100, 5]}"])
    errors, shares = (page.charts.grid.charts[name] for name in ("eps_g", "task_share"))
    assert [curve.label for curve in page.charts.grid.shown["eps_g"]] == ["task = 1", "task = 2"]
    assert shares.figure.x_range is errors.figure.x_range
    assert errors.log_y
    assert not shares.log_y  # a share may be 0
    for switch in (50, 20):
        page.source.sliders["switch"].value = switch
        x, first = (np.array(shares.curves["theory"].data[part][0]) for part in ("x", "y"))
        assert first[x < switch].min() == 1
        assert first[x > switch + 1].max() == 0
        assert x[first == 1].max() == x[first == 0].min()  # a step
        error = page.charts.grid.shown["eps_g"][0]
        assert error.theory_x[error.theory.argmin()] == pytest.approx(switch, abs=1)


@pytest.mark.slow
def test_a_protocol_has_its_own_sliders_and_keys(opened):
    page = opened("replay", ["protocol=blocked", "t=0,50,100"])
    live = page.source
    assert [slider.label for slider in protocol(page, "replay")] == ["fraction"]
    assert live.scenario.config()["protocol"] == {"replay": 0.1}
    protocol(page, "replay")[0].value = 0.3
    assert page.charts.grid.shown["task_share"][0].theory[-1] == pytest.approx(0.3)
    assert link.read(link.written(live.view)).config["protocol"] == {"replay": 0.3}
    assert not protocol(page, "interleaved")
    assert not live.sliders["switch"].visible
    assert live.scenario.switch is None
    protocol(page, "blocked")
    assert live.scenario.switch == 50
    live.sliders["t"].value = 20  # which ends the slider of the switch, too
    assert live.scenario.switch == live.sliders["switch"].end == pytest.approx(19.8)
    assert not page.message.visible or page.message.severity == "info"


@pytest.mark.slow
def test_a_protocol_without_sliders_stays_as_it_was_written(opened):
    page = opened("replay", ["protocol={blocks: [0, 40, 80]}", "switch=null", "t=0,50,100"])
    assert page.source.menus[1].menu.value == "as given"
    assert page.source.scenario.config()["protocol"] == {"blocks": [0, 40, 80]}
    x, second = (page.charts.grid.shown["task_share"][1].theory_x, page.charts.grid.shown["task_share"][1].theory)
    np.testing.assert_array_equal(second, (x >= 40) & (x < 80))


def test_perceptrons_of_two_tasks_open_at_their_errors():
    start = settings.page_of("rule_tasks").start
    view = link.read("rule=hebb,perceptron&tasks=2&t=5&switch=2")
    assert {name: view.config[name] for name in ("tasks", "switch", "t")} == {"tasks": 2, "switch": 2, "t": 5}
    assert settings.named_in(view.config) == "rule_tasks"
    assert settings.config_of("rule_tasks", start)["t"][0] == 0


@pytest.mark.slow
def test_an_optimum_is_searched_while_the_page_answers(opened, monkeypatch):
    """And solved with the charts once it is found; a search that the visitor did not wait for shows nothing."""
    page = opened("replay", ["protocol=blocked", "t=0,50,100"])
    live, searched, may_end = page.source, [], threading.Event()
    ended = threading.Event()
    live.clock.later = lambda _, call: call()
    live.clock.soon = lambda call: ended.set()
    live.background.start = lambda *_: None

    def search(scenario):
        searched.append(scenario)
        may_end.wait(60)

    monkeypatch.setattr(page_theory, "search", search)
    monkeypatch.setattr(page_theory, "is_to_be_searched", lambda scenario: "control" in scenario.theory_only)
    before = live.scenario
    protocol(page, "optimal")
    assert live.scenario is before
    assert page.progress.object.startswith("searching for the optimum")
    may_end.set()
    assert ended.wait(60)
    assert [str(one.protocol) for one in searched] == ["optimal"]
    ended.clear(), may_end.clear()
    protocol(page, "optimal"), protocol(page, "blocked")
    assert live.scenario.config()["protocol"] == "blocked"
    may_end.set()
    assert not ended.wait(0.5)
