"""Interactive charts: lines break and leave the frame where theory does, and colours are legible on both themes."""

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="the extra [explore] is not installed")

import theory
from figures import series
from figures.interactive.chart import Chart
from figures.interactive.end_labels import LETTERS, ROWS, in_lines
from figures.interactive.look import LINES, WORDS, Look, contrast
from figures.style import COLOURS
from statmech import Inference, Risk
from theory.scenarios import inference, risk


def chart_of(scenario, name, axis="alpha"):
    """A chart of theory alone, dense along an axis."""
    chart = Chart(scenario.variables[name], axis)
    layout = series.Layout(axis, (scenario.CHOICE,), ())
    lines = theory.smooth(scenario, axis)
    last = {dim: -1 for dim in scenario.recorded if dim in lines.dims}
    chart.show(series.curves(name, None, lines.isel(last), layout))
    return chart


def transition():
    return Inference(prior=["binary"], alpha=[1.3, 1.6])


def least_squares():
    return Risk(loss=["square"], teacher="linear", noise=0.5, lam=0, alpha=[0.5, 2.0])


def test_a_line_breaks_at_a_first_order_transition_and_nowhere_else():
    lines = chart_of(transition(), "m").curves["theory"].data
    [jump] = np.unique(theory.solve(transition()).alpha_alg)
    before, after = lines["x"]
    assert before[-1] <= jump <= after[0]
    assert after[0] - before[-1] < 0.01
    assert lines["y"][1][0] > lines["y"][0][-1] + 0.05


def test_a_transition_that_the_solver_does_not_state_is_drawn_as_a_slope(monkeypatch):
    """The planted error of the test above."""
    monkeypatch.setattr(inference, "JUMPS", {})
    assert len(chart_of(transition(), "m").curves["theory"].data["x"]) == 1


def top_of(chart):
    """The largest value of the lines, over the upper end of the axis."""
    return max(map(max, chart.curves["theory"].data["y"])) / chart.limits.high


def test_a_line_leaves_the_chart_where_theory_diverges():
    assert top_of(chart_of(least_squares(), "mse")) > 5


def test_a_divergence_that_the_solver_does_not_state_ends_in_a_flat_top(monkeypatch):
    """The planted error of the test above."""
    monkeypatch.setattr(risk, "SINGULAR", {})
    assert not top_of(chart_of(least_squares(), "mse")) > 5


@pytest.mark.parametrize("look", [Look(), Look(dark=True)], ids=["light", "dark"])
def test_curves_and_their_labels_can_be_seen_on_both_themes(look):
    hues = [look.hue(index) for index in range(len(COLOURS))]
    assert min(contrast(hue, look.paper) for hue in hues) >= (WORDS if look.dark else LINES)
    assert min(contrast(look.words(hue), look.paper) for hue in hues) >= WORDS
    assert contrast(look.ink, look.paper) >= WORDS
    assert len({*hues}) == len(COLOURS)
    assert contrast(COLOURS[0], Look(dark=True).paper) < WORDS  # the blue of figures on paper is too dim on a dark page


def test_a_long_label_does_not_squeeze_the_curves():
    longest = "power_law (decay 1.5, teacher_decay 2, as measured on a table), nesterov"
    assert len(longest) > LETTERS * ROWS
    lines = in_lines(longest).split("\n")
    assert len(lines) == ROWS
    assert max(map(len, lines)) <= LETTERS
