"""Interactive charts: lines break and leave the frame where theory does; labels, numbers and colours are legible."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb

pytest.importorskip("bokeh", reason="the extra [explore] is not installed")

import theory
from figures import curves as series
from figures.arrangement import ArrangedResults
from figures.contrast import LINE_CONTRAST, TEXT_CONTRAST, compute_contrast
from figures.description import CurveStyle, DrawnCurve, DrawnLine, DrawnMark, PanelDescription
from figures.interactive.axes_and_theme import (
    DARK_PAGE_FILTER,
    LABEL_LINE_LETTERS,
    MAX_LABEL_LINES,
    PAGE_COLOUR,
    TEXT_COLOUR,
    get_curve_colour,
    get_text_colour,
    wrap_label,
)
from figures.interactive.chart import Chart
from figures.interactive.chart_rows import COVERED_PART_DASH, interpolate_smoothly
from figures.overlay import describe_panel
from figures.style import CURVE_COLOURS, get_curve_style, make_shades
from statmech import Inference, Results, Risk
from statmech.keys.figure_key import Composition
from theory.kinds import bayes_inference, empirical_risk
from theory.solutions import break_lines_at_jumps

pytestmark = pytest.mark.quick


def chart_of(scenario, name, axis="alpha"):
    """A chart of theory alone, dense along an axis."""
    layout = series.Layout(axis, (scenario.CHOICE,), ())
    lines = theory.smooth(scenario, axis)
    last = {dim: -1 for dim in scenario.recorded_coordinates if dim in lines.dims}
    results = Results(scenario, None, lines.isel(last))
    variables = {name: scenario.variables[name]}
    selection = ArrangedResults(results, layout), results
    return Chart(describe_panel([selection], variables, Composition(y=name), "")[0])


def transition():
    return Inference(prior=["binary"], alpha=[1.3, 1.6])


def least_squares():
    return Risk(loss=["square"], teacher="linear", noise=0.5, lam=0, alpha=[0.5, 2.0])


@pytest.mark.slow
def test_a_line_breaks_at_a_first_order_transition_and_nowhere_else():
    lines = chart_of(transition(), "m").curves["theory"].data
    [jump] = np.unique(theory.solve(transition()).alpha_alg)
    before, after = lines["x"]
    assert before[-1] <= jump <= after[0]
    assert after[0] - before[-1] < 0.01
    assert lines["y"][1][0] > lines["y"][0][-1] + 0.05


@pytest.mark.slow
def test_a_transition_that_the_solver_does_not_state_is_drawn_as_a_slope(monkeypatch):
    """The planted error of the test above."""
    monkeypatch.setattr(bayes_inference, "TRANSITION_VARIABLES", {})
    assert len(chart_of(transition(), "m").curves["theory"].data["x"]) == 1


def top_of(chart):
    """The largest value of the lines, over the upper end of the axis."""
    return max(map(max, chart.curves["theory"].data["y"])) / chart.limits.high


def test_a_line_leaves_the_chart_where_theory_diverges():
    assert top_of(chart_of(least_squares(), "mse")) > 5


def test_a_divergence_that_the_solver_does_not_state_ends_in_a_flat_top(monkeypatch):
    """The planted error of the test above."""
    monkeypatch.setattr(empirical_risk, "find_singularities", lambda scenario: {})
    assert not top_of(chart_of(least_squares(), "mse")) > 5


DARK_PAGE = "#121212"  # of Material UI
LUMINANCE = np.array([0.213, 0.715, 0.072])  # of the filters of CSS


def seen_on_a_dark_page(colour):
    """The colour behind `DARK_PAGE_FILTER`, as the specification of filters in CSS defines it."""
    assert DARK_PAGE_FILTER == "var(--panel-icon-filter) hue-rotate(180deg) contrast(0.9) brightness(1.2)"
    inverted = 1 - np.array(to_rgb(colour))
    turned = np.clip(2 * LUMINANCE @ inverted - inverted, 0, 1)
    return to_hex(np.clip(1.2 * (0.9 * (turned - 0.5) + 0.5), 0, 1))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_curves_and_their_labels_can_be_seen_on_both_themes(dark):
    page = DARK_PAGE if dark else PAGE_COLOUR
    seen = seen_on_a_dark_page if dark else str
    hues = [get_curve_colour(colour) for colour in (*CURVE_COLOURS, *make_shades(10))]
    assert min(compute_contrast(seen(hue), page) for hue in hues) >= LINE_CONTRAST
    assert min(compute_contrast(seen(get_text_colour(hue)), page) for hue in hues) >= TEXT_CONTRAST
    assert compute_contrast(seen(TEXT_COLOUR), page) >= TEXT_CONTRAST
    assert len({*map(seen, hues)}) == len(hues)
    assert compute_contrast(seen(PAGE_COLOUR), page) < 1.1  # of hollow points
    assert compute_contrast("#000000", DARK_PAGE) < LINE_CONTRAST  # a black curve is not seen without the filter


def test_a_long_label_does_not_squeeze_the_curves():
    longest = "power_law (decay 1.5, teacher_decay 2, as measured on a table), nesterov"
    assert len(longest) > LABEL_LINE_LETTERS * MAX_LABEL_LINES
    lines = wrap_label(longest).split("\n")
    assert len(lines) == MAX_LABEL_LINES
    assert max(map(len, lines)) <= LABEL_LINE_LETTERS


def drawn(y, theory=None, levels=(), label="curve ", log="", **keys):
    """A chart of means at x = 1, 2, 4, 8, with theory there."""
    x = np.array([1.0, 2.0, 4.0, 8.0])
    curves = [series.Curve("", x, np.array(mean), theory_x=x, theory=theory, reference_levels=levels) for mean in y]
    styles = [get_curve_style(index) for index in range(len(y))]
    return Chart(
        PanelDescription(
            "y",
            "x",
            "$y$",
            log=log,
            curves=tuple(
                DrawnCurve(curve, CurveStyle(style, style, {}), f"{label}{index}", f"{label}{index}")
                for index, (curve, style) in enumerate(zip(curves, styles, strict=True))
            ),
            **keys,
        )
    )


def test_a_level_that_all_curves_have_is_drawn_once_in_grey():
    x, common = np.full(4, 0.5), ("limit", np.full(4, 0.1))
    theory = drawn([[1, 2, 3, 4]] * 3, x, (common,)).curves["theory"].data
    assert theory["label"].count("limit") == 1
    colour = theory["color"][theory["label"].index("limit")]
    assert colour not in {hue for hue, label in zip(theory["color"], theory["label"], strict=True) if label != "limit"}


def test_a_level_that_two_of_three_curves_have_is_grey_and_that_of_the_third_has_its_colour():
    panel = drawn([[1, 2, 3, 4]] * 3, np.full(4, 0.5)).panel
    levels = [("limit", np.full(4, value)) for value in (0.1, 0.1, 0.2)]
    curves = (
        replace(part, curve=replace(part.curve, reference_levels=(level,)))
        for part, level in zip(panel.curves, levels, strict=True)
    )
    theory = Chart(replace(panel, curves=tuple(curves))).curves["theory"].data
    rows = [*zip(theory["label"], theory["y"], theory["color"], strict=True)]
    hues = {label: colour for label, _, colour in rows if label.startswith("curve")}
    [(first, grey), (second, own)] = [(y[0], colour) for label, y, colour in rows if label == "limit"]
    assert (first, second, own) == (0.1, 0.2, hues["curve 2"])
    assert grey not in hues.values()


def test_a_level_that_some_curves_share_is_labelled_by_what_they_have_in_common():
    panel = drawn([[1, 2, 3, 4]] * 4, np.full(4, 0.5)).panel
    levels = [((r"$\epsilon_\mathrm{Bayes}$", np.full(4, value)),) for value in (0.4, 0.4, 0.3, 0.3)]
    names = "square, flip = 0", "hinge, flip = 0", "square, flip = 0.1", "hinge, flip = 0.1"
    curves = (
        replace(part, line_label=name, curve=replace(part.curve, reference_levels=level))
        for part, name, level in zip(panel.curves, names, levels, strict=True)
    )
    ends = Chart(replace(panel, curves=tuple(curves))).ends.data
    assert len(ends["text"]) == 6
    at = {text.replace("\u00a0", " "): y for text, y in zip(ends["text"], ends["y"], strict=True)}
    assert (at["Bayes, flip = 0"], at["Bayes, flip = 0.1"]) == (0.4, 0.3)


@pytest.mark.parametrize("last", [11, 101])
def test_integers_have_ticks_where_their_labels_have_room(last):
    x = np.array([*range(1, 7), last])
    panel = drawn([[1, 2, 3, 4]], log="x").panel
    [part] = panel.curves
    curve = series.Curve("", x, np.ones(x.size), theory_x=x, theory=np.ones(x.size))
    part = replace(part, curve=curve, has_single_theory_values=True)
    ticks = Chart(replace(panel, curves=(part,))).figure.xaxis[0].ticker.ticks
    assert ticks == {11: [1, 2, 3, 4, 5, 6, 11], 101: [1, 2, 3, 4, 5, 101]}[last]


def test_equal_lines_are_merged_in_grey_and_many_points_are_thinned():
    from figures.explorer.page_charts import merge_equal_lines, thin_points

    panel = drawn([[1, 2, 3, 4]] * 4, np.ones(4), label="unit, task ").panel
    two = [replace(curve, curve=replace(curve.curve, theory=np.zeros(4))) for curve in panel.curves[2:]]
    panel = replace(panel, curves=(*panel.curves[:2], *two))
    merged = merge_equal_lines(panel).curves
    assert [curve.line_label for curve in merged] == ["unit", "unit"]
    assert merged[0].style.line["color"] == merged[1].style.line["color"]
    assert merged[0].style.line["linestyle"] != merged[1].style.line["linestyle"]

    x = np.linspace(1, 10, 46)
    many = replace(panel.curves[0], curve=series.Curve("", x, x, error=x))
    (few,) = thin_points(replace(panel, curves=(many,))).curves
    assert few.curve.x.size == few.curve.error.size < 17


def ends_of(chart):
    """The heights of the labels, in the pixels that a chart is expected to have."""
    ends = chart.ends.data
    return [
        chart.high * chart.limits.get_relative_position(y, chart.rows.log_y) + offset
        for y, offset in zip(ends["y"], ends["offset"], strict=True)
    ]


@pytest.mark.parametrize("at", [0.0, 1.0], ids=["below", "above"])
def test_labels_of_lines_that_end_together_stay_within_the_chart(at):
    chart = drawn([[0.0, 1.0, 0.5, at]] * 7, label="nesterov, momentum = ")
    heights = sorted(ends_of(chart))
    assert len(heights) == 7
    assert heights[0] >= 0
    assert heights[-1] <= chart.high
    assert np.diff(heights).min() > 20  # two lines each


def test_an_axis_of_one_decade_has_numbers_all_along():
    chart = drawn([[0.5, 0.2, 0.06, 0.02]], log="xy")
    for axis, low, high in ((chart.figure.xaxis[0], 1, 8), (chart.figure.yaxis[0], 0.02, 0.5)):
        within = [tick for tick in axis.ticker.ticks if low <= tick <= high]
        assert len(within) >= 3
        assert min(within) <= 2 * low


def test_a_distant_level_does_not_squeeze_the_curves():
    levels = ("near", np.full(4, 0.34)), ("far", np.full(4, 0.5))
    chart = drawn([[0.32, 0.31, 0.31, 0.33]], levels=levels)
    assert 0.34 <= chart.limits.high < 0.4


def test_one_place_of_theory_among_many_is_no_line_to_make_room_for():
    chart = drawn([[0.1, 0.15, 0.2, 0.3]] * 2, np.array([1.0, np.nan, np.nan, np.nan]))
    assert chart.limits.high < 0.4
    assert {*chart.ends.data["x"]} == {8.0}  # labels stand beside the last points


def test_lines_bend_between_solved_places_and_pass_through_every_one():
    x = np.geomspace(0.1, 10, 9)
    y = x**2 / (1 + x)
    curve_x, curve_y = interpolate_smoothly(x, y, log_x=True, log_y=True)
    np.testing.assert_array_equal(curve_y[np.searchsorted(curve_x, x)], y)
    chords = np.exp(np.interp(np.log(curve_x), np.log(x), np.log(y)))
    exact = curve_x**2 / (1 + curve_x)
    assert abs(curve_y / exact - 1).max() < abs(chords / exact - 1).max() / 5


def test_covered_parts_of_a_line_are_dashed_on_top_of_the_line_that_covers_them():
    chart = drawn([[1, 2, 3, 4]] * 2, np.array([0.1, 0.2, 0.3, 0.3]))
    first, second = chart.panel.curves
    second = replace(second, curve=replace(second.curve, theory=np.array([0.5, 0.4, 0.3, 0.3])))
    chart.show(replace(chart.panel, curves=(first, second)))
    rows = chart.curves["theory"].data
    assert rows["dash"] == ["solid", "solid", COVERED_PART_DASH]
    assert rows["color"][2] == rows["color"][0] != rows["color"][1]
    assert (rows["x"][2], rows["y"][2]) == ([4.0, 8.0], [0.3, 0.3])


def test_variables_with_a_jump_have_the_same_gap_at_a_transition():
    x = np.linspace(0, 1, 11)
    jump, slow = x + (x > 0.53), np.interp(x, [0.3, 0.9], [0.2, 1.0])
    names = {"m": [jump, jump], "q": [jump, slow], "f": [x, x]}  # slow: still between its states
    lines = xr.Dataset({name: (("case", "x"), np.array(values)) for name, values in names.items()}, {"x": x})
    broken = break_lines_at_jumps(lines, "x", xr.DataArray([0.53], dims="transition"))
    gaps = {name: np.isnan(broken[name].values).tolist() for name in names}
    assert gaps["m"] == gaps["q"]
    assert all(map(any, gaps["m"]))
    assert not any(map(any, gaps["f"]))


def test_stated_limits_and_marks_are_drawn():
    star, tick = {"marker": "*", "color": "#0072B2", "markersize": 11}, {"marker": "|", "color": "0"}
    marks = DrawnMark(2.0, 0.3, star), DrawnMark(4.0, 0.2, tick)
    guides = (
        DrawnLine({"color": "0.25", "linestyle": "--"}, np.array([1.0, 8.0]), np.array([0.1, 0.4])),
        DrawnLine({"color": "0.25", "linestyle": ":"}, y=0.35),
    )
    limits = {"y": (0.0, None), "x": (None, 10.0)}
    chart = drawn([[0.1, 0.2, 0.3, 0.2]], limits=limits, marks=marks, lines=guides)
    assert (chart.figure.y_range.start, chart.figure.x_range.end) == (0.0, 10.0)
    assert 0.3 < chart.figure.y_range.end < 0.4
    assert chart.figure.x_range.start is None or np.isnan(chart.figure.x_range.start)
    rows = chart.marks.data
    assert [rows[name] for name in ("x", "y", "marker")] == [[2.0, 4.0], [0.3, 0.2], ["star", "dash"]]
    assert rows["angle"] == [0.0, np.pi / 2]
    assert (chart.guides.data["y"], chart.guides.data["dash"]) == ([[0.1, 0.4]], ["9 5"])
    assert {it.data_source for it in chart.figure.renderers} >= {chart.marks, chart.guides}
    [span] = [it for it in chart.figure.center if type(it).__name__ == "Span"]
    assert (span.location, span.line_dash) == (0.35, [2, 4])
    assert drawn([[0.1, 0.2, 0.3, 0.2]]).figure.y_range.start != 0.0
