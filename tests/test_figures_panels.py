"""A panel draws the means and the theory of its results, one colour per position, and labels what it draws."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from figures.contrast import LINE_CONTRAST, compute_contrast
from figures.panels import (
    add_title_and_legend,
    draw_legend_below,
    draw_panel,
    make_curve_handle,
    make_figure,
    make_line_handle,
    select_with_dense_theory,
    set_log_axes,
)
from figures.style import CURVE_COLOURS, PAGE_WIDTH, STYLE_SETTINGS, THEORY_COLOUR, apply_style, make_shades
from statmech import Scenario, run

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def results():
    swept = run(Scenario(rule=["hebb", "perceptron"], N=[30, 60], t=[0, 1, 5], seeds=3))
    return select_with_dense_theory(swept.simulation, swept.theory, "t")


def of(results, **position):
    """Results at one value of an axis."""
    return select_with_dense_theory(results.simulation.sel(position), results.theory.sel(position), "t")


def drawn(ax, colour):
    """What has this colour: the points, and the lines of theory."""
    own = [line for line in ax.lines if to_hex(line.get_color()) == to_hex(colour)]
    marked = [line for line in own if line.get_marker() in "os^"]
    return marked, [line for line in own if line.get_marker() == "None"]


def test_points_are_means_over_runs_and_lines_are_dense_theory(results):
    one, ax = of(results, N=30), Figure().subplots()
    keys = draw_panel(ax, one, "t", "eps_g", "rule")
    assert [key.get_label() for key in keys] == ["Hebbian", "perceptron"]
    for colour, rule in zip(CURVE_COLOURS, ("hebb", "perceptron"), strict=False):
        [points], [line] = drawn(ax, colour)
        runs = one.simulation.eps_g.sel(rule=rule)
        np.testing.assert_allclose(points.get_ydata(), runs.mean(["seed", "student"]))
        assert not np.allclose(points.get_ydata(), runs.isel(seed=0).mean("student"))
        t, expected = line.get_data()
        assert len(t) > 100
        np.testing.assert_allclose(expected[[0, -1]], one.theory.eps_g.sel(rule=rule).values[[0, -1], 0], rtol=1e-6)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$t$ (steps / $N$)", r"$\epsilon_g$")


def test_a_logarithmic_axis_leaves_out_what_is_not_positive(results):
    linear, logarithmic = Figure().subplots(1, 2)
    for ax, log in ((linear, ""), (logarithmic, "x")):
        draw_panel(ax, of(results, N=30, rule="hebb"), "t", "eps_g", log=log)
    shown = [np.isfinite(drawn(ax, CURVE_COLOURS[0])[0][0].get_xdata()).tolist() for ax in (linear, logarithmic)]
    assert shown == [[True] * 3, [False, True, True]]


def test_a_dataset_at_one_rule_has_the_line_of_this_rule(results):
    swept = select_with_dense_theory(
        results.simulation.sel(N=30, rule=["perceptron"]), results.theory.sel(N=30, rule=["perceptron"]), "t"
    )
    ax = Figure().subplots()
    draw_panel(ax, swept, "t", "eps_g", "rule")
    [line] = drawn(ax, CURVE_COLOURS[0])[1]
    last = results.theory.eps_g.sel(t=5, N=30).isel(student=0)
    np.testing.assert_allclose(line.get_ydata()[-1], last.sel(rule="perceptron"), rtol=1e-6)
    assert not np.isclose(line.get_ydata()[-1], last.sel(rule="hebb"), rtol=1e-3)


def test_several_variables_have_a_colour_each_and_a_title_has_single_values(results):
    figure, one = Figure(), of(results, N=60, rule="hebb")
    keys = draw_panel(figure.subplots(), one, "t", {"eps_g": "error", "R": "overlap"})
    assert [key.get_label() for key in keys] == ["error", "overlap"]
    assert [key.get_color() for key in keys] == list(CURVE_COLOURS[:2])
    figure = add_title_and_legend(figure, one, keys, "K", "lam", "$R$ = 0")
    assert figure.get_suptitle() == "$K$ = 1, $R$ = 0, $N$ = 60, 3 seeds"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["error", "overlap"]
    definitions = figure.legends[0].get_title().get_text()
    assert "$K$: number of students" in definitions
    assert "$N$: input dimension" in definitions


def test_a_legend_of_several_rows_has_lines_without_points_in_the_last_row():
    figure = Figure(figsize=(PAGE_WIDTH, 3))
    first, second = (make_line_handle(f"guide {number}") for number in range(2))
    curves = [make_curve_handle(index, f"curve {index}") for index in range(3)]
    apply_style(draw_legend_below)(figure, [first, *curves, second], 3)
    texts = [text.get_text().strip() for text in figure.legends[0].get_texts()]  # column after column
    assert texts == ["curve 0", "guide 0", "curve 1", "guide 1", "curve 2", ""]


def test_a_column_of_panels_names_its_axis_once_and_each_variable_with_strips_too(results):
    from figures import draw
    from figures.panels import is_residual_strip
    from figures.style import use_medium

    for residuals in (False, True):
        with use_medium("pre", residuals):
            axes = draw("overlay", results).axes
        shown = [ax for ax in axes if not is_residual_strip(ax)]
        assert len(shown) > 1
        assert all(ax.get_ylabel() for ax in shown)
        assert sum(bool(ax.get_xlabel()) for ax in axes) == 1


@pytest.mark.parametrize(("columns", "ticks"), [(1, 6), (3, 5)])
def test_a_narrow_panel_has_fewer_ticks_whose_labels_do_not_overlap(columns, ticks):
    with mpl.rc_context(STYLE_SETTINGS):
        figure, axes = make_figure(2.0, 1, columns, squeeze=False)
        for ax in axes.ravel():
            ax.plot([0.003, 0.3], [0, 1])
            ax.set_ylabel("fraction of features")
            set_log_axes(ax, "x")
        figure.draw_without_rendering()
    shown = [text.get_window_extent() for text in axes[0, 0].get_xticklabels() if text.get_text()]
    inside = [box for box in shown if axes[0, 0].bbox.x0 <= (box.x0 + box.x1) / 2 <= axes[0, 0].bbox.x1]
    assert len(inside) == ticks
    assert all(left.x1 < right.x0 for left, right in pairwise(sorted(inside, key=lambda box: box.x0)))


DARK_PAGE = "#121212"  # of the explorer


def has_line_contrast(colour, *pages):
    """Whether a line of this colour can be seen on each of these pages."""
    return min(compute_contrast(to_hex(colour), page) for page in pages) >= LINE_CONTRAST


@pytest.mark.quick
@pytest.mark.parametrize("grey", [False, True], ids=["shades", "greys"])
def test_lines_can_be_seen_on_white_and_colours_of_curves_on_dark_pages_as_well(grey):
    assert all(has_line_contrast(colour, "#ffffff", DARK_PAGE) for colour in CURVE_COLOURS[:-1])
    assert all(has_line_contrast(colour, "#ffffff") for colour in (CURVE_COLOURS[-1], THEORY_COLOUR))
    for count in (2, 10):
        shades = make_shades(count, grey)
        assert len({*shades}) == count
        assert all(has_line_contrast(shade, "#ffffff") for shade in shades)


@pytest.mark.quick
def test_lighter_colours_of_the_same_kinds_could_not_be_seen():
    """The planted errors of the test above: orange, sky blue, lime and a light grey."""
    lime, grey = mpl.colormaps["viridis"](0.9), mpl.colormaps["Greys_r"](0.65)
    assert not any(has_line_contrast(colour, "#ffffff") for colour in ("#E69F00", "#56B4E9", lime, grey))


def test_a_note_wider_than_a_figure_is_wrapped_between_words():
    from matplotlib.figure import Figure

    from figures.panels import wrap_texts

    note = "all points of a panel use the same data sets and the same $N$ = 500, and deviate together"
    lines = wrap_texts(Figure(figsize=(3.4, 2)), [note, "lines: theory"], "; ").splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) < 60
    assert " ".join(lines) == f"{note}; lines: theory"


def test_a_long_note_stays_whole_below_a_single_panel_and_in_one_column():
    import figures
    from figures.style import use_medium
    from statmech import Scenario, run
    from statmech.keys.figure_key import Composition

    note = "all points of this panel use the same data sets, and they deviate together from their theory"
    results = run(Scenario(rule=["hebb", "perceptron"], N=20, t=[1, 2], seeds=2))
    wide = figures.compose(results, Composition(y="R", note=note))
    with use_medium("phone"):
        narrow = figures.compose(results, Composition(y="R", note=note))
    assert wide.legends[-1].get_title().get_text() == ""
    texts = [wide.get_supxlabel(), narrow.legends[-1].get_title().get_text()]
    assert [note + ";" in " ".join(text.split()) for text in texts] == [True, True]
