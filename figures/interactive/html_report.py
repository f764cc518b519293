r"""Report in one HTML file on a folder of results, with the scenario's equations as pictures.

The report can be sent to a colleague or kept with a paper. The page contains everything that it shows: the figure,
charts with the library that draws them, and tables. It loads nothing, and a content policy forbids browsers to load
anything. A template escapes all text, because names in configs, folders and messages are not trusted.

Equations: the pictures need neither scripts nor fonts. The figure is drawn twice, the second time in one column for
phones. Matplotlib supports a part of LaTeX (mathtext), and unsupported commands are rewritten. An equation that
matplotlib still cannot draw is shown as LaTeX.
"""

from __future__ import annotations

import base64
import math
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import figures
from figures import curves
from figures.interactive.typeface import FONT_STACK, MONOSPACE_FONT_STACK, make_font_css
from figures.labels import format_control_with_arrows, get_symbol, html_from_latex, kind_label, plain_from_latex
from figures.style import apply_style, make_svg_element, use_medium
from statmech import __version__
from statmech.config.config_files import format_config
from statmech.errors import ConfigError
from statmech.keys.figure_key import Composition
from statmech.keys.scenario import AbstractScenario
from statmech.keys.sweep_grid import ensure_tuple
from statmech.results.export_and_citations import format_bibtex, format_reference, get_citation_keys
from statmech.results.results import load_results
from statmech.runtime import files
from statmech.runtime.installed_packages import require_modules
from statmech.runtime.user_code_and_provenance import format_version
from statmech.stores.dataset import decode_attributes
from statmech.stores.store_status import read_logged_runs
from statmech.stores.zarr_store import list_stores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from statmech.results.results import Results
    from statmech.results.tables import Table, TableCell, TableColumn


EQUATION_FONT_SIZE = 14  # points, as in the surrounding text
MATHTEXT_REPLACEMENTS = (  # unsupported LaTeX and its equivalent in mathtext
    (r"\\[td]frac", r"\\frac"),
    (r"\\frac\s*(\w)\s*(\w)", r"\\frac{\1}{\2}"),
    (r"\\frac\s*(\w)\s*(\\\w+|\{)", r"\\frac{\1}\2"),
    (r"(\\frac\{\w\})(\\[a-z]+)", r"\1{\2}"),
    (r"\\(mathbf|mathrm|mathcal)\s+(\w)", r"\\\1{\2}"),
    (r"\\(le|ge)(?![a-z])", r"\\\1q"),
    (r"\\[bB]igg?[lr]?(?![a-z])", ""),
)


def render_equations(scenario: AbstractScenario) -> list[tuple[str, str, str]]:
    """Return the equations of a scenario and its learners as tuples (label, LaTeX, SVG element or "")."""
    common = [("", latex) for latex in scenario.displayed_equations]
    learner_equations = [
        (kind_label(scenario.classes(), name), scenario.get_equation(name))
        for name in scenario.list_chosen_class_names()
    ]
    return [(owner, latex, svg_from_latex(latex)) for owner, latex in (*common, *learner_equations) if latex]


def mathtext_from_latex(latex: str) -> str:
    r"""Rewrite an equation in the subset of LaTeX that matplotlib supports.

    >>> equation = r"\epsilon_g = \tfrac1\pi\arccos R \ge 0, \quad \mathbf w \leftarrow \tfrac12\mathbf w"
    >>> print(mathtext_from_latex(equation))
    \epsilon_g = \frac{1}{\pi}\arccos R \geq 0, \quad \mathbf{w} \leftarrow \frac{1}{2}\mathbf{w}
    """
    for pattern, replacement in MATHTEXT_REPLACEMENTS:
        latex = re.sub(pattern, replacement, latex)
    return latex


@apply_style
def _draw_equation(text: str) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    figure.set_layout_engine("none")
    figure.patch.set_alpha(0)
    text_artist = figure.text(0, 0, f"${text}$", size=EQUATION_FONT_SIZE, math_fontfamily="cm")
    box = text_artist.get_window_extent(FigureCanvasAgg(figure).get_renderer())
    margin = 2 * figure.dpi / 72
    figure.set_size_inches((box.width + 2 * margin) / figure.dpi, (box.height + 2 * margin) / figure.dpi)
    text_artist.set_position(((margin - box.x0) / figure.bbox.width, (margin - box.y0) / figure.bbox.height))
    return figure


def svg_from_latex(latex: str) -> str:
    """Return an equation as an SVG element, or "" if matplotlib cannot draw it."""
    try:
        return make_svg_element(_draw_equation(mathtext_from_latex(latex)))
    except ValueError:
        return ""


REPORT_TEMPLATE = "report.html.jinja"
SIGNS_BY_PLAIN_TEXT = {
    "sqrt(N)": "√N",
    "^2": "²",
    "-> infinity": "→ ∞",
    "w.xi": "w·ξ",
    "w.w*": "w·w*",
    "alpha N": "αN",
    "simulation - theory": "simulation − theory",
}  # replaces plain letters in long names
DIMENSION_KEYS = ("N", "K", "data")  # shown at the top of a page if the scenario has them


def write_report(result: Path, out: Path | None = None) -> Path:
    """Write the report on a folder of results, and return its path.

    Parameters
    ----------
    result
        A folder of results, or a store in it.
    out
        The file to write; `report.html` in the folder by default.

    Raises `StoreError` if results are missing or corrupted or the file cannot be written, and `MissingExtraError` if
    bokeh is not installed. Nothing is written in these cases.
    """
    require_modules("a report", "explore", "bokeh", "jinja2")
    results = load_results(result)
    file = out or _get_folder(results) / "report.html"
    files.write_atomically(file, render_page(results).encode(errors="backslashreplace"), named_by_user=out is not None)
    return file


def render_page(results: Results) -> str:
    """Return the report as HTML."""
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from figures.interactive.report_charts import charts
    from theory.solutions import cache_theory_lines

    with cache_theory_lines():
        picture, choice = _draw_figure(results)
        page_charts = charts(results, choice)
    script, elements = _embed_charts([chart.figure for chart_set in page_charts.sets for chart in chart_set])
    remaining = iter(map(Markup, elements))
    parts = {
        "equations": [(owner, latex, Markup(svg)) for owner, latex, svg in render_equations(results.scenario)],
        "charts": page_charts,
        "sets": [
            [(chart.is_folded, Markup(chart.ylabel), Markup(chart.xlabel), next(remaining)) for chart in chart_set]
            for chart_set in page_charts.sets
        ],
        "meanings": [(Markup(name), use_mathematical_signs(meaning)) for name, meaning in page_charts.explanations],
        "legend": [(label, Markup(swatch)) for label, swatch in page_charts.legend],
        "fonts": {"faces": Markup(make_font_css()), "text": Markup(FONT_STACK), "code": Markup(MONOSPACE_FONT_STACK)},
        "left_out": [Markup(entry) for entry in page_charts.omitted_values],
        "picture": picture,
        "library": Markup(_make_bokeh_scripts(Resources(mode="inline", components=["bokeh"], log_level="warn"))),
        "script": Markup(script),
    }
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    title = _make_title(results, picture)
    return environment.get_template(REPORT_TEMPLATE).render(**_collect_texts(results), title=title, **parts)


def _make_title(results: Results, picture: dict[str, Any] | None) -> str:
    """Return the title of the figure, or the kind of scenario if the figure has no title of its own."""
    if picture and picture["shows"] not in ("", figures.OVERLAY_DESCRIPTION):
        return str(picture["shows"]).rstrip(".")
    return results.scenario.TITLE[:1].upper() + results.scenario.TITLE[1:]


def use_mathematical_signs(text: str) -> str:
    """Replace spelled-out names in a text by mathematical signs.

    >>> use_mathematical_signs("mean square of the estimate, |w|^2/N"), use_mathematical_signs("N -> infinity")
    ('mean square of the estimate, |w|²/N', 'N → ∞')
    """
    for letters, sign in SIGNS_BY_PLAIN_TEXT.items():
        text = text.replace(letters, sign)
    return text


def _make_bokeh_scripts(resources: Any) -> str:
    """Return Bokeh as script elements.

    `render_js` would add the files of every extension that the process has imported.
    """
    return "".join(f"<script>{script}</script>" for script in resources.js_raw)


def _embed_charts(charts: list[Any]) -> tuple[str, list[str]]:
    """Return the script that draws the charts, and the HTML element of each chart."""
    from bokeh.document import Document
    from bokeh.embed import components

    document = Document()
    with document.models.freeze():  # otherwise `components` collects all models again for each chart
        for chart in charts:
            document.add_root(chart)
    script, elements = components(charts)
    return script, list(elements)


def _collect_texts(results: Results) -> dict[str, Any]:
    """Collect the texts and tables of the page."""
    from statmech.results.tables import make_results_tables

    scenario = results.scenario
    keys = get_citation_keys(scenario)
    return {
        "name": results.name,
        "summary": _summarise_results(results),
        "sizes": _get_dimensions_and_seeds(scenario),
        "status": results.status,
        "missing": _explain_missing_part(results),
        "tables": [format_table(table, results) for table in make_results_tables(results)],
        "config": format_config(scenario),
        "stores": {part: _get_provenance(results, part) for part in ("simulation", "theory")},
        "references": [(key, format_reference(key)) for key in keys],
        "bibtex": format_bibtex(keys),
        "on_data": scenario.on_data,
        "bounds": any(variable.bound for variable in scenario.variables.values()),
        "bands": _describe_bands(results),
        "made": time.strftime("%F %T"),
        "version": __version__,
    }


def format_table(table: Table, results: Results) -> Table:
    """Return a table with symbols and labels instead of names of variables and values, and with minus signs."""
    from markupsafe import Markup

    scenario = results.scenario
    described, headings = scenario.theory_only_variables | scenario.variables, {col.heading for col in table.columns}
    variables = curves.distinguish_symbols({name: described[name] for name in described if name in headings})

    def format_heading(column: TableColumn) -> TableColumn:
        symbol = get_symbol(scenario, column.heading) if column.key else column.heading
        if not column.key and column.heading in variables:
            symbol = variables[column.heading].symbol
        return replace(column, heading=Markup(html_from_latex(symbol)))

    def format_cell(column: TableColumn, cell: TableCell) -> TableCell:
        label = kind_label(scenario.choices().get(column.heading, {}), cell.text) if column.key else cell.text
        return replace(cell, text=re.sub(r"^-(?=\d)", "\N{MINUS SIGN}", format_control_with_arrows(label)))

    return replace(
        table,
        title=use_mathematical_signs(table.title),
        columns=tuple(map(format_heading, table.columns)),
        rows=tuple(tuple(map(format_cell, table.columns, row)) for row in table.rows),
        notes=tuple(map(use_mathematical_signs, table.notes)),
    )


def _describe_bands(results: Results) -> str:
    """Describe the bands of theory, or return "" without bands."""
    from figures import legends

    has_bands = results.theory is not None and curves.has_run_bands(results.scenario)
    return plain_from_latex(legends.describe_bands(results)).removeprefix("band: ") if has_bands else ""


def _summarise_results(results: Results) -> str:
    """Summarise the kind of scenario, the size of the sweep and the available parts in one sentence of HTML."""
    from markupsafe import Markup, escape

    scenario, seeds = results.scenario, results.scenario.seeds
    kind = (type(scenario).__doc__ or "").partition("\n\n")[0].rstrip(".")
    axes = {
        axis: curves.get_axis_coordinates(results.either, axis) for axis in scenario.shape
    }  # a parallel axis has several keys
    names = {axis: ", ".join(html_from_latex(get_symbol(scenario, key)) for key in keys) for axis, keys in axes.items()}
    shape = " × ".join(f"{length} of {names[axis]}" for axis, length in scenario.shape.items())
    count = math.prod(scenario.shape.values())
    parts = [f"{count} parameter combinations ({shape})" if shape else "one parameter combination"]
    if results.simulation is not None:
        parts.append(f"{seeds} seeds each" if seeds > 1 else "one seed each")
    if not scenario.on_data:
        datasets = {"simulation": results.simulation, "theory": results.theory}
        parts.append(" and ".join(name for name, part in datasets.items() if part is not None))
    return Markup(f"{escape(use_mathematical_signs(kind))}: {', '.join(parts)}.")


def _get_dimensions_and_seeds(scenario: AbstractScenario) -> list[tuple[str, str]]:
    """Return the dimensions and the number of seeds as pairs (symbol, values)."""
    keys = [name for name in DIMENSION_KEYS if hasattr(scenario, name)]
    values_by_symbol = {
        plain_from_latex(get_symbol(scenario, name)): ensure_tuple(getattr(scenario, name)) for name in keys
    }
    defined = {name: values for name, values in values_by_symbol.items() if values and None not in values}
    return [
        (name, ", ".join(f"{value:,g}" if _is_number(value) else str(value) for value in values))
        for name, values in defined.items()
    ] + [("seeds", str(scenario.seeds))]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _explain_missing_part(results: Results) -> str:
    """Explain why theory or simulation is missing, or return "" if both exist."""
    scenario, folder = results.scenario, results.folder
    if results.simulation is None:
        return f"There is no simulation in {folder}; statmech run CONFIG --out {folder} computes it."
    if results.theory is None and scenario.unsolved:
        return f"{scenario.unsolved[0].upper()}{scenario.unsolved[1:]}: there is nothing to compare with."
    if results.theory is None:
        return f"There is no theory in {folder}; statmech theory CONFIG --out {folder} computes it."
    return ""


def _draw_figure(results: Results) -> tuple[dict[str, Any] | None, str | Composition]:
    """Draw the figure of the results with its caption, or explain why it cannot be drawn.

    Also returns the name of the figure or its composition.
    """
    from markupsafe import Markup

    from figures import captions

    if not results.complete:
        return None, ""
    try:
        choice = _choose_figure(results)
        name, drawn_figure, reason = figures.draw_with_fallback(choice, results)
        with use_medium("phone"):
            phone_figure = figures.draw_with_fallback(choice, results).figure
        captioned = name if reason or isinstance(choice, str) else choice
    except ConfigError as failure:
        return {"name": "", "shows": "", "caption": f"No figure: {failure}", "source": ""}, ""
    picture = {
        "name": name,
        "shows": captioned.title
        if isinstance(captioned, Composition)
        else figures.list_figures(results.scenario.CHOICE).get(name, ""),
        "caption": Markup(
            re.sub("`([^`]*)`", r"<code>\1</code>", html_from_latex(captions.make_caption(results, captioned)))
        ),
        "source": _make_picture_source(drawn_figure),
        "phone_source": _make_picture_source(phone_figure),
        "inches": drawn_figure.get_figwidth(),
    }
    return picture, choice


def _make_picture_source(figure: Figure) -> str:
    """Return a figure as the source of an HTML picture."""
    return f"data:image/svg+xml;base64,{base64.b64encode(make_svg_element(figure).encode()).decode()}"


def _choose_figure(results: Results) -> str | Composition:
    """Choose the figure named in the config, or a figure already drawn in the folder."""

    choice = results.scenario.CHOICE
    drawn_names = [name for name in figures.list_figures(choice) if (_get_folder(results) / f"{name}.svg").is_file()]
    return figures.choose_figure(results.figure, drawn_names[0] if drawn_names else "", choice)


def _get_folder(results: Results) -> Path:
    """Return the folder that the results were loaded from."""
    assert results.folder is not None
    return results.folder


def _get_provenance(results: Results, part: str) -> dict[str, str]:
    """Return the code version, the machine and the time of a store."""
    dataset = getattr(results, part)
    if dataset is None:
        return {}
    attributes = decode_attributes(dataset.attrs)
    versions = ", ".join(f"{name} {version}" for name, version in attributes.get("versions", {}).items())
    return {
        "source": use_mathematical_signs(attributes.get("source", "")),
        "commit": attributes.get("commit", "") or "none: installed",
        "versions": versions,
        "earlier versions": "; ".join(map(format_version, attributes.get("earlier", []))) or "none",
        "your files": ", ".join(attributes.get("code", {})) or "none",
        "python": attributes.get("python", ""),
        "machine": attributes.get("machine", ""),
        "when": _get_write_time(_get_folder(results) / f"{part}.zarr"),
    }


def _get_write_time(path: Path) -> str:
    """Return the time when a store was written, from its log or, without a log, from the date of its file."""
    events = [
        event["time"].replace("T", " ")
        for store in list_stores(path)
        for run in read_logged_runs(store.with_suffix(".log"))
        for event in run
    ]
    if events:
        return f"{' to '.join(sorted({min(events), max(events)}))}, according to its log"
    date = time.localtime((list_stores(path)[-1] / "zarr.json").stat().st_mtime)
    return f"{time.strftime('%F %T', date)}, according to the date of its file"
