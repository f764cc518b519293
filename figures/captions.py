r"""Captions of figures: content, parameters, N, number of runs, meaning of bars and lines, and the command.

The module of a published figure describes its content in `CAPTION`. It explains its points and lines in `POINTS` and
`LINES` if they are not means over runs and theory. The rest follows from the results. Text between dollar signs is
LaTeX, for the `.tex` file that is saved with a figure. The `.txt` file has the caption in plain letters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import arrangement, labels, legends, series, stated_keys
from figures.labels import plain
from figures.style import MOST_POINTS
from statmech import config
from statmech.errors import StatmechError
from statmech.runtime import files
from statmech.scenarios.composition import Composition, drawable
from statmech.scenarios.variables import ERROR

if TYPE_CHECKING:
    from statmech.results.results import Results

SPECIAL = re.compile(r"([#%&_])")  # characters to escape outside mathematics


def caption(results: Results, figure: str | Composition) -> str:
    """Return the caption of a figure of these results, in LaTeX.

    Parameters
    ----------
    results
        Simulation and theory that are drawn.
    figure
        The name of a published figure or of the overlay, or a composition.

    Returns
    -------
    One paragraph of LaTeX.

    Examples
    --------
    >>> from statmech import Scenario, run
    >>> results = run(Scenario(rule="hebb", N=50, t=[1, 2], seeds=4))
    >>> print(plain(caption(results, "overlay")))  # doctest: +ELLIPSIS
    Online ensemble: R and ε_g against t (steps / N). Rule: Hebbian; K = 1; N = 50; ...
    """
    return " ".join(sentence.strip() for sentence in _sentences(results, figure) if sentence)


def save(results: Results, figure: str | Composition, stem: Path) -> list[Path]:
    """Write the caption of a figure to two files, as plain text and as LaTeX to include.

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
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from statmech import Scenario, run
    >>> results = run(Scenario(rule="hebb", N=50, t=[1, 2], seeds=4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save(results, "overlay", Path(folder) / "overlay")]
    ['overlay.txt', 'overlay.tex']
    """
    return save_text(caption(results, figure), stem)


def save_text(text: str, stem: Path) -> list[Path]:
    """Write a LaTeX caption to two files, as plain text and as LaTeX to include."""
    contents = {"txt": plain(text), "tex": _latex(text)}
    return files.write_beside(
        stem, {suffix: f"{content}\n".encode(errors="backslashreplace") for suffix, content in contents.items()}
    )


def _latex(text: str) -> str:
    """Escape LaTeX's special characters outside mathematics, and set commands in a typewriter font."""
    parts = text.split("$")
    parts[::2] = [re.sub(r"`(.*?)`", r"\\texttt{\1}", SPECIAL.sub(r"\\\1", part)) for part in parts[::2]]
    return "$".join(parts)


def _sentences(results: Results, figure: str | Composition) -> Iterator[str]:
    yield _shown(results, figure)
    yield f"{_parameters(results)}."
    yield from _points(results, figure)
    yield from _lines(results, figure)
    yield from _further(figure)
    yield f"Command: `{command(results, figure)}`."


def _shown(results: Results, figure: str | Composition) -> str:
    """Return the first sentence of a caption, which describes the content of the figure."""
    from figures import OVERLAYS, PUBLISHED

    composition = figure if isinstance(figure, Composition) else Composition()
    if isinstance(figure, str) and figure not in OVERLAYS:
        description = PUBLISHED[results.scenario.CHOICE][figure]
        return _own(results, figure, "CAPTION") or f"{description[0].upper()}{description[1:]}."
    title = (results.scenario.TITLE or type(results.scenario).__name__).capitalize()
    variable_text = symbols(results, [*arrangement.variables(results, composition)])
    over = f", divided by {symbols(results, [composition.over])}" if composition.over else ""
    return f"{title}: {variable_text}{over}{_against(results, composition)}."


def _against(results: Results, wish: Composition) -> str:
    """Return the phrase of a caption that names the horizontal axis, such as " against t"."""
    if wish.x in drawable(results.scenario):
        return f" against {symbols(results, [wish.x])}"
    x = wish.x or arrangement.abscissa(results)
    if x is None:
        return ""
    names = series.along(results.either, x) if x in results.either.dims else [x]
    return f" against {labels.axis_label(results.scenario, names)}"


def symbols(results: Results, names: Iterable[str | None]) -> str:
    """Return the symbols of variables, joined by commas and "and"."""
    variables = drawable(results.scenario)
    texts = [variables[name].symbol for name in names if name]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _own(results: Results, figure: str | Composition, sentence: str) -> str | None:
    """Return a sentence that a figure's module defines (`CAPTION`, `POINTS` or `LINES`), or None for the default."""
    from figures import module_of

    text: str | None = None if isinstance(figure, Composition) else getattr(module_of(figure), sentence, None)
    return text


def _parameters(results: Results) -> str:
    """Describe all keys that determine the numbers, with a list or a range of values for an axis."""
    scenario = results.scenario
    keys, choice = stated_keys.of(scenario), scenario.CHOICE
    learns = f"{choice.capitalize()}: {stated_keys.in_words(scenario, choice, stated_keys.written(scenario)[choice])}"
    return "; ".join([learns, *(stated_keys.with_symbol(scenario, name, value) for name, value in keys.items())])


def _points(results: Results, figure: str | Composition) -> Iterator[str]:
    if (own_text := _own(results, figure, "POINTS")) is not None or results.simulation is None:
        yield own_text or ""
        return
    runs, seeds, folds = results.simulation, results.scenario.seeds, results.simulation.sizes.get("fold")
    if folds:
        yield f"Points: means over {folds} folds and {seeds} shuffles; bars: standard errors over folds."
    elif seeds == 1:
        yield "Points: one run, without error bars."
    else:
        yield f"Points: means over {seeds:,} independent runs; bars: standard errors of these means."
    if any(runs.sizes[axis] > MOST_POINTS for axis in series.axes(runs) if series.is_numeric(runs, axis)):
        yield f"Of each curve at most {MOST_POINTS} points are drawn."


def _lines(results: Results, figure: str | Composition) -> Iterator[str]:
    from figures import OVERLAYS

    if (own_text := _own(results, figure, "LINES")) is not None or results.theory is None:
        yield own_text or ""
        return
    bounds = any(variable.bound for variable in results.scenario.variables.values())
    limit = r" in the limit $N\to\infty$" if "N" in series.ignored_in_the_limit(results.scenario) else ""
    yield "Dashed lines: bounds of theory." if bounds else f"Lines: theory{limit}."
    errors = [values for name, values in results.theory.items() if str(name).endswith(ERROR)]
    if any((error > 0).any() for error in errors) and arrangement.abscissa(results) not in results.scenario.recorded:
        yield "Theory is sampled: its lines are splines within its standard errors."
    if (reason := results.scenario.not_judged) and results.simulation is not None:
        yield f"{reason[0].upper()}{reason[1:]}.".replace("1/sqrt(N)", r"$1/\sqrt{N}$")
    if series.has_bands(results.scenario) and (isinstance(figure, Composition) or figure in OVERLAYS):
        sentence = legends.band_of(results)
        yield f"{sentence[0].upper()}{sentence[1:]}."


def _further(figure: str | Composition) -> Iterator[str]:
    """Describe the points from a file and the lines of fits."""
    if isinstance(figure, Composition) and figure.points:
        yield f"Diamonds: {Path(figure.points).name}."
    if isinstance(figure, Composition) and figure.fit:
        yield (
            "Broad lines: power laws fitted to the upper half of the logarithmic range, with jackknife errors of the "
            "exponents. Exponents of theory are fitted in the same way."
        )


def command(results: Results, figure: str | Composition) -> str:
    """Return the command that draws a figure: as typed, for a shipped config with overrides, or for stored results."""
    if results.command:
        return results.command
    if isinstance(figure, Composition):
        return command_of([results.folder.name if results.folder else "RESULTS"], figure)
    match = _config_of(results, figure)
    if match is None:
        return f"statmech figure {results.folder.name if results.folder else 'RESULTS'} figure={figure}"
    name, shipped = match
    values, defaults = results.scenario.config(), shipped.config()
    changed = {key: value for key, value in values.items() if defaults.get(key) != value and key != "figure"}
    figure_option = [] if figure in (name, shipped.figure) else [f"figure={figure}"]
    return " ".join(
        ["statmech run", name, *(f"{key}={_override(value)}" for key, value in changed.items()), *figure_option]
    )


def command_of(folders: Iterable[str], wish: Composition) -> str:
    """Return the shell command that draws a composition of these result folders.

    >>> command_of(["svm", "bayes"], Composition(y=["eps_g", "R"], fit=True))
    'statmech figure svm bayes --y eps_g,R --fit'
    """
    fields = wish.model_dump(mode="json")
    texts = {name: ",".join(value) if isinstance(value, list) else value for name, value in fields.items()}
    options = [f"--{name}" if value is True else f"--{name} {value}" for name, value in texts.items()]
    return " ".join(["statmech figure", *folders, *options])


def caption_of_several(every: Mapping[str, Results], wish: Composition) -> str:
    """Return the LaTeX caption of a figure that combines several labelled results."""
    first = next(iter(every.values()))
    parts = arrangement.arranged(every, wish)
    variable_text, abscissa_text = symbols(first, arrangement.common_variables(parts, wish)), _against(first, wish)
    sentences = [f"{variable_text}{f', divided by {symbols(first, [wish.over])}' if wish.over else ''}{abscissa_text}."]
    for label, results in every.items():
        sentence = _parameters(results)
        sentences.append(f"{label}: {sentence[0].lower()}{sentence[1:]}; {results.scenario.seeds:,} runs.")
    sentences.append("Points: means over runs; bars: standard errors of these means. Lines: theory.")
    sentences += _further(wish)
    folders = [str(results.folder or label) for label, results in every.items()]
    return " ".join([*sentences, f"Command: `{command_of(folders, wish)}`."])


def _config_of(results: Results, figure: str) -> tuple[str, Any] | None:
    """Find a shipped config of the same kind, by the name of the results or of the figure."""
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
    if isinstance(value, list) and all(isinstance(item, int | float | str) for item in value):
        return ",".join(labels.value_in_words(item) if not isinstance(item, str) else item for item in value)
    return (
        value
        if isinstance(value, str)
        else f"'{json.dumps(value)}'"
        if isinstance(value, dict | list)
        else labels.value_in_words(value)
    )
