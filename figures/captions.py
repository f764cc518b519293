r"""Captions of figures: content, parameters, N, number of runs, meaning of bars and lines, and the command.

A published figure with code of its own describes its content, and its points and lines if they are not means over runs
and theory (`figures.published_figure`). The rest follows from the results. Text between dollar signs is LaTeX, for the
`.tex` file that is saved with a figure. The `.txt` file has the caption in plain letters.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import arrangement, curves, labels, legends
from figures.labels import plain_from_latex
from figures.style import MAX_DRAWN_MARKERS, MAX_MARKERS_PER_CURVE
from statmech.config import config_files
from statmech.config.config_files import list_shipped_configs
from statmech.errors import StatmechError
from statmech.keys.figure_key import OPTION_KEYS, Composition
from statmech.keys.variables import list_standard_error_names
from statmech.runtime import files

if TYPE_CHECKING:
    from statmech.results.results import Results

LATEX_SPECIAL_PATTERN = re.compile(r"([#%&_])")  # characters to escape outside mathematics


def make_caption(results: Results, figure: str | Composition) -> str:
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
    >>> print(plain_from_latex(make_caption(results, "overlay")))  # doctest: +ELLIPSIS
    Online ensemble: R and ε_g against t (steps / N). Rule: Hebbian; K = 1; N = 50; ...
    """
    if isinstance(figure, Composition) and not figure.theory:
        results = replace(results, theory=None)
    return " ".join(sentence.strip() for sentence in _make_caption_sentences(results, figure) if sentence)


def write_caption(results: Results, figure: str | Composition, stem: Path) -> list[Path]:
    """Write the caption of a figure to a plain text file and a LaTeX file.

    Parameters
    ----------
    results, figure
        As for `make_caption`.
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
    ...     [file.name for file in write_caption(results, "overlay", Path(folder) / "overlay")]
    ['overlay.txt', 'overlay.tex']
    """
    return write_caption_text(make_caption(results, figure), stem)


def write_caption_text(text: str, stem: Path) -> list[Path]:
    """Write a LaTeX caption to a plain text file and a LaTeX file."""
    contents = {"txt": plain_from_latex(text), "tex": _escape_latex(text)}
    return files.write_with_suffixes(
        stem, {suffix: f"{content}\n".encode(errors="backslashreplace") for suffix, content in contents.items()}
    )


def _escape_latex(text: str) -> str:
    """Escape LaTeX's special characters outside mathematics, and set commands in a typewriter font."""
    parts = text.split("$")
    parts[::2] = [
        re.sub("`(.*?)`", _format_latex_code, LATEX_SPECIAL_PATTERN.sub(r"\\\1", part)) for part in parts[::2]
    ]
    return "$".join(parts)


def _format_latex_code(code: re.Match[str]) -> str:
    return r"\texttt{" + re.sub("([{}])", r"\\\1", code[1]) + "}"


def _make_caption_sentences(results: Results, figure: str | Composition) -> Iterator[str]:
    content = _describe_content(results, figure)
    yield content
    yield f"{_describe_parameters(results)}."
    if definitions := labels.define_symbols(results.scenario, content):
        yield f"Symbols: {'; '.join(definitions)}."
    yield from _describe_points(results, figure)
    yield from _describe_lines(results, figure)
    yield from _describe_points_file_and_fits(figure)
    yield f"Command: `{get_figure_command(results, figure)}`."


def _describe_content(results: Results, figure: str | Composition) -> str:
    """Return the first sentence of a caption, which describes the content of the figure."""
    from figures import OVERLAY, get_published_figure
    from statmech.config.shipped_configs import read_shipped_config

    composition = figure if isinstance(figure, Composition) else Composition()
    if isinstance(figure, str) and figure != OVERLAY:
        published = get_published_figure(figure)
        return (published and published.caption) or read_shipped_config(figure).figure.title
    if composition.caption:
        return composition.caption
    title = composition.title.rstrip(".") or (results.scenario.TITLE or type(results.scenario).__name__).capitalize()
    contents = composition.list_contents()
    panels = [_describe_panel(results, content) for content in contents]
    letters = [f"({letter}) " for letter in string.ascii_lowercase] if len(contents) > 1 else [""]
    panel_text = "; ".join(f"{letter}{text}" for letter, text in zip(letters, panels, strict=False))
    return f"{title}: {panel_text}."


def _describe_panel(results: Results, content: Composition) -> str:
    """Return the phrase of a caption that names the variables and the horizontal axis of a panel."""
    names = content.y or [*arrangement.select_variables(results, content)]
    over = f", divided by {join_variable_symbols(results, [content.over], content)}" if content.over else ""
    return f"{join_variable_symbols(results, names, content)}{over}{_describe_abscissa(results, content)}"


def _describe_abscissa(results: Results, composition: Composition) -> str:
    """Return the phrase of a caption that names the horizontal axis, such as " against t"."""
    if composition.x in arrangement.get_possible_variables(results, composition):
        return f" against {join_variable_symbols(results, [composition.x], composition)}"
    x = composition.x or arrangement.choose_abscissa(results)
    if x is None:
        return ""
    names = curves.get_axis_coordinates(results.either, x) if x in results.either.dims else [x]
    return f" against {labels.axis_label(results.scenario, names)}"


def join_variable_symbols(results: Results, names: Iterable[str | None], composition: Composition) -> str:
    """Return the symbols of variables, joined by commas and "and"."""
    variables = arrangement.get_possible_variables(results, composition)
    texts = [variables[name].symbol for name in names if name]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _describe_parameters(results: Results) -> str:
    """Describe all parameters of the results, with a list or range of values for each axis."""
    scenario = results.scenario
    keys, choice = labels.get_caption_keys(scenario), scenario.CHOICE
    values = labels.expand_config(scenario)[choice]
    learns = f"{choice.capitalize()}: {labels.format_values(scenario, choice, values)}"
    return "; ".join([learns, *(labels.format_key_and_value(scenario, name, value) for name, value in keys.items())])


def _describe_points(results: Results, figure: str | Composition) -> Iterator[str]:
    from figures import get_published_figure

    published = get_published_figure(figure)
    own_text = published and published.points_caption
    if own_text is not None or results.simulation is None:
        yield own_text or ""
        return
    runs, seeds, folds = results.simulation, results.scenario.seeds, results.simulation.sizes.get("fold")
    if curves.has_independent_samples(results):
        yield f"Points: means over {seeds} data sets with {folds} folds each; bars: standard errors over data sets."
    elif folds:
        shuffles = f"{seeds} shuffle{'s' if seeds > 1 else ''}"
        yield f"Points: means over {folds} folds and {shuffles}; bars: standard errors over folds."
    elif seeds == 1:
        yield "Points: one run, without error bars."
    else:
        yield f"Points: means over {seeds:,} independent runs; bars: standard errors of these means."
    if any(
        runs.sizes[axis] > MAX_MARKERS_PER_CURVE
        for axis in curves.get_chart_axes(runs)
        if curves.has_several_numbers(runs, axis)
    ):
        yield f"Of each curve at most {MAX_DRAWN_MARKERS} points are drawn."


def _describe_lines(results: Results, figure: str | Composition) -> Iterator[str]:
    from figures import OVERLAY, get_published_figure

    published = get_published_figure(figure)
    own_text = published and published.lines_caption
    if own_text is not None or results.theory is None:
        yield own_text or ""
        return
    bounds = any(variable.bound for variable in results.scenario.variables.values())
    limit = r" in the limit $N\to\infty$" if "N" in curves.get_axes_ignored_by_theory(results.scenario) else ""
    yield "Dashed lines: bounds of theory." if bounds else f"Lines: theory{limit}."
    errors = [results.theory[name] for name in list_standard_error_names(results.theory)]
    if any((error > 0).any() for error in errors):
        yield "Theory is sampled: its lines are splines within two standard errors of samples."
    if (reason := results.scenario.expected_deviation_reason) and results.simulation is not None:
        yield f"{reason[0].upper()}{reason[1:]}.".replace("1/sqrt(N)", r"$1/\sqrt{N}$")
    if curves.has_run_bands(results.scenario) and (isinstance(figure, Composition) or figure == OVERLAY):
        sentence = legends.describe_bands(results)
        yield f"{sentence[0].upper()}{sentence[1:]}."


def _describe_points_file_and_fits(figure: str | Composition) -> Iterator[str]:
    """Describe the points read from a file and the fitted lines."""
    if isinstance(figure, Composition) and figure.points:
        yield f"Diamonds: {Path(figure.points).name}."
    if isinstance(figure, Composition) and figure.fit:
        yield (
            "Broad lines: power laws fitted to the upper half of the logarithmic range, with jackknife errors of the "
            "exponents. Exponents of theory are fitted in the same way."
        )


def get_figure_command(results: Results, figure: str | Composition) -> str:
    """Return the shell command that draws this figure from a config or from stored results.

    It loads the files of the user with the rules, losses, ... of these results.
    """
    command, files_of_user = _find_figure_command(results, figure), results.scenario.user_code_digests()
    options = [part for name in files_of_user if name.endswith(".py") for part in ("--load", name)]
    return command if "--load" in command else command.replace("statmech", " ".join(["statmech", *options]), 1)


def _find_figure_command(results: Results, figure: str | Composition) -> str:
    if results.command:
        return results.command
    folder = results.folder.name if results.folder else "RESULTS"
    if isinstance(figure, Composition) and figure.name not in list_shipped_configs():
        is_stored = figure == results.scenario.figure
        return f"statmech figure {folder}" if is_stored else make_composition_command([folder], figure)
    figure_name = figure.name if isinstance(figure, Composition) else figure
    match = _find_shipped_config(results, figure_name)
    if match is None:
        return f"statmech figure {folder} figure={figure_name}"
    name, shipped = match
    values, defaults = results.scenario.config(), shipped.config()
    changed = {key: value for key, value in values.items() if defaults.get(key) != value and key != "figure"}
    own_figure = shipped.figure.drawn_by_name or name if isinstance(shipped.figure, Composition) else name
    figure_option = [] if figure_name in (name, own_figure) else [f"figure={figure_name}"]
    return " ".join(
        ["statmech run", name, *(f"{key}={_format_override(value)}" for key, value in changed.items()), *figure_option]
    )


def make_composition_command(folders: Iterable[str], composition: Composition) -> str:
    """Return the shell command that draws a composition of these result folders.

    The other keys of a composition come from the section `figure` of the stored config.

    >>> make_composition_command(["svm", "bayes"], Composition(y=["eps_g", "R"], fit=True))
    'statmech figure svm bayes --y eps_g,R --fit'
    """
    fields = composition.model_dump(mode="json", include={*OPTION_KEYS})
    texts = {name: ",".join(value) if isinstance(value, list | dict) else value for name, value in fields.items()}
    options = [f"--{name}" if value is True else f"--{name} {value}" for name, value in texts.items()]
    return " ".join(["statmech figure", *folders, *options])


def make_joint_caption(labelled_results: Mapping[str, Results], composition: Composition) -> str:
    """Return the LaTeX caption of a figure that combines several labelled results."""
    first = next(iter(labelled_results.values()))
    parts = arrangement.arrange_results(labelled_results, composition)
    variable_text = join_variable_symbols(first, arrangement.select_common_variables(parts, composition), composition)
    abscissa_text = _describe_abscissa(first, composition)
    divisor = join_variable_symbols(first, [composition.over], composition)
    divisor_text = f", divided by {divisor}" if divisor else ""
    sentences = [f"{variable_text}{divisor_text}{abscissa_text}."]
    for label, results in labelled_results.items():
        sentence = _describe_parameters(results)
        sentences.append(f"{label}: {sentence[0].lower()}{sentence[1:]}; {results.scenario.seeds:,} runs.")
    sentences.append("Points: means over runs; bars: standard errors of these means. Lines: theory.")
    sentences += _describe_points_file_and_fits(composition)
    folders = [str(results.folder or label) for label, results in labelled_results.items()]
    return " ".join([*sentences, f"Command: `{make_composition_command(folders, composition)}`."])


def _find_shipped_config(results: Results, figure: str) -> tuple[str, Any] | None:
    """Find the shipped config of the same kind that is named like the results or the figure."""
    for name in (results.name, figure):
        if name in list_shipped_configs():
            try:
                shipped = config_files.load(name)
            except StatmechError:
                continue
            if type(shipped) is type(results.scenario) and shipped.config().keys() <= results.scenario.config().keys():
                return name, shipped
    return None


def _format_override(value: Any) -> str:
    """Format the value of a key for a command that reproduces it exactly."""
    if isinstance(value, list) and all(isinstance(item, int | float | str) for item in value):
        spaced = config_files.format_yaml_value(value)
        return f"'{spaced}'" if spaced.startswith("{") else ",".join(map(_format_override, value))
    if isinstance(value, dict | list):
        return f"'{json.dumps(value)}'"
    text = value if isinstance(value, str) else labels.format_config_value(value)
    return text if not isinstance(value, float) or float(text) == value else repr(value)
