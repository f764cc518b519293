"""Every registered kind of scenario is drawn by the overlay, and reported with its charts, tables and equations."""

from __future__ import annotations

import html
import io
import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from pages import Page
from small import SMALL

import figures
import simulate
import theory
from figures import curves, inspection, labels
from figures.interactive import report_charts
from figures.interactive.html_report import format_table, use_mathematical_signs, write_report
from statmech import Results, load, load_results
from statmech.results.export_and_citations import get_citation_keys
from statmech.results.tables import make_results_tables
from statmech.stores import zarr_store
from theory.solutions import cache_theory_lines

pytest.importorskip("panel")  # a notebook may have loaded it; a report must contain nothing of it
pytestmark = [pytest.mark.quick, pytest.mark.slow]


@pytest.fixture(autouse=True, scope="module")
def _each_line_once():
    with cache_theory_lines():
        yield


every_kind = pytest.mark.parametrize("choice", SMALL)


@cache
def of_kind(choice):
    """Results of the small sweep of a kind, computed once."""
    scenario = SMALL[choice]
    return Results(scenario, simulate.run(scenario), None if scenario.unsolved else theory.solve(scenario))


@pytest.fixture
def reported(tmp_path_factory, data_folder):
    """The file of the report of a kind, which lies beside its stores, and the charts in it, made once."""
    return lambda choice: _reported(choice, tmp_path_factory.mktemp)


@cache
def _reported(choice, new_folder):
    results, folder, shown = of_kind(choice), new_folder(choice), []
    zarr_store.save(results.simulation, folder / "simulation.zarr")
    if results.theory is not None:
        zarr_store.save(results.theory, folder / "theory.zarr")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            report_charts, "charts", lambda *given, make=report_charts.charts: shown.append(make(*given)) or shown[-1]
        )
        return write_report(folder), *shown


def lines(figure):
    """All values in a figure."""
    shown = [np.asarray(line.get_xydata(), float).ravel() for ax in figure.axes for line in ax.lines]
    return np.concatenate([*shown, [np.nan]])


@every_kind
def test_results_can_be_written_by_to_netcdf(choice, reported):
    results, (file, _) = of_kind(choice), reported(choice)
    for part in ("simulation", "theory"):
        if getattr(results, part) is None:
            continue
        for dataset in (getattr(results, part), zarr_store.load(file.parent / f"{part}.zarr")):
            with xr.open_dataset(io.BytesIO(dataset.to_netcdf(engine="scipy")), engine="scipy") as found:
                assert found.attrs["config"] == dataset.attrs["config"]
                for name, values in dataset.data_vars.items():
                    np.testing.assert_array_equal(found[name], values)


@every_kind
def test_the_overlay_draws_every_kind_with_and_without_theory(choice):
    results = of_kind(choice)
    variables, figure = curves.select_main_variables(results), figures.draw(figures.OVERLAY, results)
    assert len(figure.axes) % len(variables) == 0  # a panel for each, or one for each of several names
    assert inspection.find_figure_faults(figure) == []
    drawn = lines(figure)
    for variable in variables:
        mean, _ = curves.compute_mean_and_error(results.simulation[variable])
        finite = mean.values[np.isfinite(mean.values)]
        assert all(np.isclose(drawn, value, rtol=1e-12).any() for value in finite), variable
    simulated = figures.draw("overlay", results.simulation, None)
    assert np.isfinite(lines(simulated)).any()
    if results.theory is not None:
        solved = lines(figures.draw("overlay", None, results.theory))
        line = results.theory[next(iter(variables))]
        line = line.mean("student") if "student" in line.dims else line
        sampled = 1e-2 if f"{line.name}_error" in results.theory else 1e-8  # lines have fewer samples
        assert all(np.isclose(solved, value, rtol=1e-12, atol=sampled).any() for value in line.values.flat)


@every_kind
def test_every_kind_of_scenario_has_a_chart_per_variable(choice, reported):
    results, (_, shown) = of_kind(choice), reported(choice)
    titles = {chart.figure.name for charts in shown.sets for chart in charts}
    constant = [said.partition(", which is ")[0] for said in shown.omitted_values if said.endswith(" throughout")]
    judged = [it for it in curves.get_variables_with_values(results).values() if it.role != "diagnostic"]
    named = {labels.plain_from_latex(it.symbol): it.long_name for it in judged}
    stated = titles | {symbol for symbol, meaning in named.items() if f"{symbol} ({meaning})" in constant}
    assert stated <= {*named}
    names = {labels.plain_from_latex(it.symbol): name for name, it in curves.get_variables_with_values(results).items()}
    for symbol in {*named} - stated:  # as the vote and the mean of one student
        assert any(have_equal_means(results, names[symbol], names[other]) for other in titles)
    drawn = {label for charts in shown.sets for chart in charts for label in labels_of_points(chart.figure)}
    named = {label for label, *_ in shown.legend}
    assert all({*label.split(", ")} <= named or label in named for label in drawn if label), (drawn, named)


def labels_of_points(chart):
    """The labels of the curves of a chart."""
    return {label for it in chart.renderers if it.name == "points" for label in it.data_source.data["label"]}


def have_equal_means(results, one, other):
    """Whether two variables have equal means over seeds at the first place of each axis, for the first student."""
    at = (
        results.simulation.mean("seed")
        .isel(dict.fromkeys(results.scenario.shape, 0))
        .isel(student=0, missing_dims="ignore")
    )
    return np.allclose(at[one], at[other], rtol=1e-6, equal_nan=True)


@every_kind
def test_a_report_is_one_file_with_all_results_that_loads_nothing(choice, tmp_path, reported):
    results, scenario, (file, _) = of_kind(choice), SMALL[choice], reported(choice)
    text = file.read_text()
    page, plain = Page(text), html.unescape(text)
    stored = {"simulation.zarr"} if results.theory is None else {"simulation.zarr", "theory.zarr"}
    assert {path.name for path in file.parent.iterdir()} == {"report.html", *stored}
    assert page.loaded() == []
    assert not [tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "base")]
    sources = [attrs.get("src") or attrs["srcset"] for tag, attrs in page.elements if tag in ("img", "source")]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    charted = [
        variable for variable in curves.get_variables_with_values(results).values() if variable.role != "diagnostic"
    ]
    assert charted
    assert [variable for variable in charted if use_mathematical_signs(variable.long_name) not in plain] == []
    shown = make_results_tables(results)
    assert "<table" in shown._repr_html_() or "not judged" in shown._repr_html_()
    for table in (format_table(plain_table, results) for plain_table in shown):
        assert table.rows or scenario.has_symmetric_start  # a network on its plateau is not judged
        assert all(row in page.rows for row in cells(table))
        assert all(note.strip() in page.words for note in table.notes)
    assert config_of(page.pres, tmp_path) == scenario.config()
    assert set(re.findall(r"^@\w+\{(\w+),", page.words, re.MULTILINE)) == set(get_citation_keys(scenario))
    assert load_results(file.parent).simulation.attrs["versions"].split('"numpy": "')[1].split('"')[0] in page.words
    pictures = [attrs for tag, attrs in page.elements if tag == "img" or attrs.get("role") == "img"]
    assert pictures
    assert all(attrs.get("aria-label") or attrs.get("alt") for attrs in pictures)


def cells(table):
    return [[cell.text for cell in row] for row in table.rows]


def config_of(texts, folder):
    """The config among the preformatted texts."""
    [text] = [text for text in texts if re.match(r"\w+: ", text)]
    (folder / "again.yaml").write_text(text)
    return load(folder / "again.yaml").config()
