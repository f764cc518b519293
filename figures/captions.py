r"""Captions of figures: what is drawn, its parameters, N, the number of runs, what bars and lines are, and the command.

A published figure states what it shows in its `CAPTION`, and in `POINTS` and `LINES` what those are where they are not
means over runs and theory; the rest follows from the results. Text is LaTeX inside dollar signs, for the `.tex` file
beside a figure; the `.txt` file has it in plain letters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from figures import labels, legends, series
from figures.labels import plain
from statmech import config
from statmech.errors import StatmechError
from statmech.parameters import known_parameters
from statmech.runtime import files
from statmech.scenarios.axes import once
from statmech.scenarios.base import AbstractScenario

if TYPE_CHECKING:
    from statmech.results.results import Results

SPECIAL = re.compile(r"([#%&_])")  # of LaTeX, outside mathematics
FEW = 8  # values of an axis that are listed
UNSTATED = (
    "key",
    "figure",
    "seeds",
    "dtype",
    "engine",
    "gram",
    "start",
    "zip",
    "corrections",
    "strengths",
    "plane",
    "cap",
    "tests",
)


def caption(results: Results, figure: str) -> str:
    """Return the caption of a figure of these results, in LaTeX.

    Parameters
    ----------
    results
        Simulation and theory that are drawn.
    figure
        The name of a published figure, or of the overlay.

    Returns
    -------
    One paragraph of LaTeX.

    Examples
    --------
    >>> from statmech import Scenario, run
    >>> results = run(Scenario(rule="hebb", N=50, t=[1, 2], seeds=4))
    >>> print(plain(caption(results, "overlay")))  # doctest: +ELLIPSIS
    Online ensemble: every variable against t (steps / N). Rule: Hebbian, N = 50. ...
    """
    return " ".join(sentence.strip() for sentence in _sentences(results, figure) if sentence)


def save(results: Results, figure: str, stem: Path) -> list[Path]:
    """Write the caption beside a figure, as plain text and as LaTeX to include.

    Parameters
    ----------
    results, figure
        As for `caption`.
    stem
        The path of the figure without its suffix.

    Returns
    -------
    The two files.

    Raises
    ------
    StoreError
        If one cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from statmech import Scenario, run
    >>> results = run(Scenario(rule="hebb", N=50, t=[1, 2], seeds=4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(results, "overlay", Path(folder) / "overlay")]
    ['overlay.txt', 'overlay.tex']
    """
    text = caption(results, figure)
    contents = {"txt": plain(text), "tex": _latex(text)}
    return files.write_beside(stem, {suffix: f"{content}\n".encode() for suffix, content in contents.items()})


def _latex(text: str) -> str:
    """Escape LaTeX's special characters outside mathematics, and set commands in a typewriter font."""
    parts = text.split("$")
    parts[::2] = [re.sub(r"`(.*?)`", r"\\texttt{\1}", SPECIAL.sub(r"\\\1", part)) for part in parts[::2]]
    return "$".join(parts)


def _sentences(results: Results, figure: str) -> Iterator[str]:
    yield _shown(results, figure)
    yield f"{_parameters(results)}."
    yield from _points(results, figure)
    yield from _lines(results, figure)
    yield f"Command: `{command(results, figure)}`."


def _shown(results: Results, figure: str) -> str:
    """Return the content of the figure, in its own words."""
    from figures import OVERLAYS, PUBLISHED
    from figures.overlay import abscissa

    if figure not in OVERLAYS:
        short = PUBLISHED[results.scenario.CHOICE][figure]
        return _own(results, figure, "CAPTION") or f"{short[0].upper()}{short[1:]}."
    title, x = results.scenario.TITLE or type(results.scenario).__name__, abscissa(results)
    if x is None:
        return f"{title.capitalize()}: every variable."
    names = series.along(results.either, x) if x in results.either.dims else [x]
    return f"{title.capitalize()}: every variable against {labels.axis_label(results.scenario, names)}."


def _own(results: Results, figure: str, sentence: str) -> str | None:
    """Return the figure's own `CAPTION`, `POINTS` (what points and bars are) or `LINES`; None: that of every figure."""
    from figures import module_of

    own: str | None = getattr(module_of(figure), sentence, None)
    return own


def _parameters(results: Results) -> str:
    """The values of what learns, of N, and of the keys that do not have their default; an axis as a list or a range."""
    scenario = results.scenario
    written, defaults = _written(scenario), _defaults(scenario)
    names = [name for name in written if name not in (*UNSTATED, *_along_x(results), scenario.CHOICE)]
    stated = [name for name in names if name == "N" or written[name] != defaults.get(name)]
    learns = f"{scenario.CHOICE.capitalize()}: {_values(scenario, scenario.CHOICE, written[scenario.CHOICE])}"
    return ", ".join([learns, *(_stated(scenario, name, written[name]) for name in stated)])


def _written(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the keys as a config writes them, and the values of parallel axes, each once."""
    written = scenario.config()
    for group in written.get("zip", []):
        written |= {name: once(values) for name, values in group.items()}
    return written


def _defaults(scenario: AbstractScenario) -> dict[str, Any]:
    """Return the default of every key, as a config would hold it."""
    fields = {name: field.default for name, field in type(scenario).model_fields.items()}
    given = {name: key.default for name, key in known_parameters(scenario.classes()).items()}
    sections = {name: it.model_dump(mode="json") for name, it in fields.items() if isinstance(it, BaseModel)}
    return {**fields, **sections, **given, "inputs": "gaussian"}


def _along_x(results: Results) -> list[str]:
    """Return the recorded times, if there are several."""
    return [name for name, values in results.scenario.recorded.items() if values.size > 1 and name == "t"]


def _stated(scenario: AbstractScenario, name: str, value: Any) -> str:
    return f"{labels.symbol(scenario, name)} = {_values(scenario, name, value)}"


def _values(scenario: AbstractScenario, name: str, value: Any) -> str:
    """Return one value, a short list, or the range of a long one."""
    label = labels.mathtext_label(scenario)
    many = list(value) if isinstance(value, tuple | list) else [value]
    if len(many) > FEW and all(isinstance(it, int | float) for it in many):
        many = sorted(many)  # its range; parallel axes are in any order
    words = [
        label(name, it) if isinstance(it, str) else f"{it:,}" if isinstance(it, int) else labels.value_in_words(it)
        for it in many
    ]
    return ", ".join(words) if len(words) <= FEW else f"{words[0]} to {words[-1]} ({len(words)} values)"


def _points(results: Results, figure: str) -> Iterator[str]:
    if (own := _own(results, figure, "POINTS")) is not None or results.simulation is None:
        yield own or ""
        return
    seeds, folds = results.scenario.seeds, results.simulation.sizes.get("fold")
    if folds:
        yield f"Points: means over {folds} folds and {seeds} shuffles; bars: standard errors over folds."
    elif seeds == 1:
        yield "Points: one run, without error bars."
    else:
        bars = "bars" if series.has_bands(results.scenario) else "bars and bands"
        yield f"Points: means over {seeds:,} independent runs; {bars}: standard errors of these means."


def _lines(results: Results, figure: str) -> Iterator[str]:
    from figures import OVERLAYS

    if (own := _own(results, figure, "LINES")) is not None or results.theory is None:
        yield own or ""
        return
    bounds = any(variable.bound for variable in results.scenario.variables.values())
    limit = r" in the limit $N\to\infty$" if "N" in series.ignored_in_the_limit(results.scenario) else ""
    yield "Dashed lines: bounds of theory." if bounds else f"Lines: theory{limit}."
    if series.has_bands(results.scenario) and figure in OVERLAYS:
        sentence = legends.band_of(results)
        yield f"{sentence[0].upper()}{sentence[1:]}."


def command(results: Results, figure: str) -> str:
    """State the command that draws the figure: as given, of a shipped config with overrides, or of the results."""
    if results.command:
        return results.command
    known = _config_of(results, figure)
    if known is None:
        return f"statmech figure {results.folder.name if results.folder else 'RESULTS'} figure={figure}"
    name, shipped = known
    given, default = results.scenario.config(), shipped.config()
    changed = {key: value for key, value in given.items() if default.get(key) != value and key != "figure"}
    other = [] if figure in (name, shipped.figure) else [f"figure={figure}"]
    return " ".join(["statmech run", name, *(f"{key}={_override(value)}" for key, value in changed.items()), *other])


def _config_of(results: Results, figure: str) -> tuple[str, Any] | None:
    """Return the shipped config of these results: that of their name, or of the figure's, if it is of the same kind."""
    for name in (results.name, figure):
        if name in config.shipped():
            try:
                shipped = config.load(name)
            except StatmechError:
                continue
            if type(shipped) is type(results.scenario) and shipped.config().keys() <= results.scenario.config().keys():
                return name, shipped
    return None


def _override(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(it, int | float | str) for it in value):
        return ",".join(labels.value_in_words(it) if not isinstance(it, str) else it for it in value)
    return (
        value
        if isinstance(value, str)
        else f"'{json.dumps(value)}'"
        if isinstance(value, dict | list)
        else labels.value_in_words(value)
    )
