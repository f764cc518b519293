"""A report: one HTML file of what a folder of results holds, to send to somebody or to keep beside a paper.

The page holds all it shows: pictures, charts with the library that draws them, tables. It loads nothing, and a policy
in its head forbids browsers to. Words come into it through a template that escapes them: names in configs, folders and
messages are anybody's.
"""

from __future__ import annotations

import importlib.util
import json
import math
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech import __version__, files
from statmech.errors import ConfigError, StoreError
from statmech.results import store
from statmech.results.citations import bibtex, cited, readable
from statmech.results.dataset import scenario_of
from statmech.results.log import logs, runs
from statmech.results.status import read as status_of

if TYPE_CHECKING:
    import xarray as xr

PAGE = "report.html.jinja"


@dataclass(frozen=True)
class Results:
    """A folder with a simulation, its theory, or both, and what is known of the simulation's runs."""

    folder: Path
    simulation: xr.Dataset | None
    theory: xr.Dataset | None
    status: dict[str, Any] | None = None

    @property
    def either(self) -> xr.Dataset:
        """What there is to say of the scenario, both can."""
        found = self.simulation if self.simulation is not None else self.theory
        assert found is not None
        return found

    @property
    def scenario(self) -> Any:
        """The scenario that they are results of."""
        return scenario_of(self.either)

    @property
    def whole(self) -> bool:
        """Whether there is all that is drawn and compared."""
        return self.simulation is not None and (self.theory is not None or self.scenario.on_data)


def report(result: Path, out: Path | None = None) -> Path:
    """Write the report of a folder of results, or of the folder of a store, and return its file.

    Raises `StoreError` where there are no results, they are damaged or the file cannot be written, and `ConfigError`
    where bokeh is missing; nothing is written then.
    """
    if importlib.util.find_spec("bokeh") is None:
        raise ConfigError("a report needs bokeh: pip install -e '.[explore]' where statmech lies")
    results = read(result)
    file = out or results.folder / "report.html"
    text = page(results)
    files.write(file, text.encode())
    return file


def read(result: Path) -> Results:
    """What a folder holds. Raises `StoreError` if that is nothing, or is damaged, or is of two configs."""
    folder = result.parent if result.suffix == ".zarr" else result
    simulated, solved = folder / "simulation.zarr", folder / "theory.zarr"
    if not (simulated.is_dir() or solved.is_dir()):
        raise StoreError(f"{result}: has no results. `statmech run CONFIG --out {folder}` makes them")
    if not simulated.is_dir():
        return Results(folder, None, store.load(solved))
    simulation, status = store.load(simulated), None
    with suppress(StoreError):  # one that was saved at once, not grown, has no states
        status = status_of(simulated)
    return Results(folder, simulation, store.kept(solved, scenario_of(simulation), False), status)


def page(results: Results) -> str:
    """The report as HTML."""
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from figures.interactive.charts import charts

    drawn = charts(results.simulation, results.theory)
    script, elements = _embedded([chart for place in drawn.places for chart in place.charts])
    waiting = iter(map(Markup, elements))
    parts = {
        "charts": drawn,
        "places": [(place.at, [next(waiting) for _ in place.charts]) for place in drawn.places],
        "picture": _picture(results),
        "library": Markup(_library(Resources(mode="inline", components=["bokeh"], log_level="warn"))),
        "script": Markup(script),
    }
    here = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return here.get_template(PAGE).render(**_told(results), **parts)


def _library(resources: Any) -> str:
    """Bokeh as script elements; `render_js` would add files of whatever extension a process has imported."""
    return "".join(f"<script>{script}</script>" for script in resources.js_raw)


def _embedded(charts: list[Any]) -> tuple[str, list[str]]:
    """The script that draws charts, and the element of each."""
    from bokeh.document import Document
    from bokeh.embed import components

    document = Document()
    with document.models.freeze():  # components would gather all models anew for each chart
        for chart in charts:
            document.add_root(chart)
    script, elements = components(charts)
    return script, list(elements)


def _told(results: Results) -> dict[str, Any]:
    """All that is words."""
    from statmech.results.study_tables import tables

    scenario = results.scenario
    keys = cited(scenario)
    return {
        "name": results.folder.absolute().name,
        "summary": _summary(results),
        "status": results.status,
        "lacking": _lacking(results),
        "tables": list(tables(results.either, results.theory)) if results.whole else [],
        "config": "\n".join(f"{name}: {json.dumps(value)}" for name, value in scenario.config().items()),
        "stores": {part: _made(results, part) for part in ("simulation", "theory")},
        "references": [(key, readable(key)) for key in keys],
        "bibtex": bibtex(keys),
        "on_data": scenario.on_data,
        "bounds": any(variable.bound for variable in scenario.variables.values()),
        "made": time.strftime("%F %T"),
        "version": __version__,
    }


def _summary(results: Results) -> str:
    """One sentence: what was done, in how many cells."""
    scenario, seeds = results.scenario, results.scenario.seeds
    kind = (type(scenario).__doc__ or "").partition(";")[0]
    shape = " x ".join(f"{length} {name}" for name, length in scenario.shape.items())
    parts = [f"{math.prod(scenario.shape.values())} cells ({shape})" if shape else "one cell"]
    if results.simulation is not None:
        parts.append(f"{seeds} seeds each" if seeds > 1 else "one seed each")
    if not scenario.on_data:
        both = {"simulation": results.simulation, "theory": results.theory}
        parts.append(" against ".join(name for name, part in both.items() if part is not None))
    return f"{kind}: {', '.join(parts)}."


def _lacking(results: Results) -> str:
    """Why there is no theory, or no simulation, to compare and draw."""
    scenario, folder = results.scenario, results.folder
    if results.simulation is None:
        return f"There is no simulation in {folder} yet: statmech run CONFIG --out {folder} makes it."
    if results.theory is None and scenario.unsolved:
        return f"{scenario.unsolved[0].upper()}{scenario.unsolved[1:]}: there is nothing to compare with."
    if results.theory is None:
        return f"There is no theory in {folder} yet: statmech theory CONFIG --out {folder} makes it."
    return ""


def _picture(results: Results) -> dict[str, Any] | None:
    """The published figure as an SVG element, and what it shows; of a figure that cannot be drawn, why."""
    from markupsafe import Markup

    import figures
    from figures.style import element

    if not results.whole or results.simulation is None:
        return None
    try:
        name = figures.fitting(_figure(results), results.simulation)
        drawn = figures.draw(name, results.simulation, results.theory)
    except ConfigError as failure:
        return {"name": "", "shows": f"No figure: {failure}", "svg": ""}
    shows = figures.FIGURES[results.scenario.CHOICE][name]
    return {"name": name, "shows": shows, "svg": Markup(element(drawn)), "inches": drawn.get_figwidth()}


def _figure(results: Results) -> str:
    """The figure that the config asks for, or that has been drawn in the folder, or that has the folder's name."""
    import figures

    scenario = results.scenario
    there = [name for name in figures.FIGURES[scenario.CHOICE] if (results.folder / f"{name}.svg").is_file()]
    return figures.named(scenario.figure, there[0] if there else results.folder.absolute().name, scenario.CHOICE)


def _made(results: Results, part: str) -> dict[str, str]:
    """What is known of how a store was made."""
    dataset = getattr(results, part)
    if dataset is None:
        return {}
    known = dataset.attrs
    versions = ", ".join(f"{name} {version}" for name, version in known.get("versions", {}).items())
    return {
        "source": known.get("source", ""),
        "commit": known.get("commit", "") or "none: installed",
        "versions": versions,
        "python": known.get("python", ""),
        "machine": known.get("machine", ""),
        "when": _when(results.folder / f"{part}.zarr"),
    }


def _when(path: Path) -> str:
    """When a store was made, by its log or, without one, by its date."""
    events = [event["time"].replace("T", " ") for log in logs(path) for run in runs(log) for event in run]
    if events:
        return f"{min(events)} to {max(events)}, by its log"
    return f"{time.strftime('%F %T', time.localtime((path / 'zarr.json').stat().st_mtime))}, by its file's date"
