"""Commands of `statmech` that inspect and share results.

- inspection: compare, figure, explore, status, verify
- sharing: report, export, cite
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statmech.cli.options_and_jobs import (
    ConfigArgument,
    ConfigOptions,
    DataFolderOption,
    FigureOptions,
    JsonOption,
    OverrideArguments,
    ResultFolderArgument,
    SetOption,
    accept_options,
    parse_nonempty_path,
)
from statmech.cli.terminal_output import print
from statmech.errors import ConfigError
from statmech.runtime.installed_packages import require_modules

if TYPE_CHECKING:
    from statmech.cli.options_and_jobs import Job
    from statmech.keys.figure_key import Composition


@accept_options(ConfigOptions)
def compare(source: ConfigOptions) -> None:
    """Report the deviation of simulation from theory in standard errors.

    Example: `statmech compare results/ensemble` after `statmech run ensemble`.
    """
    from statmech.cli import run_steps, terminal_output
    from statmech.cli.options_and_jobs import job_from_source

    job = job_from_source(source)
    if job.scenario.unsolved:
        raise ConfigError(f"{job.name}: {job.scenario.unsolved}: there is nothing to compare")
    terminal_output.print_comparison_tables(run_steps.load_stored_results(job))


@accept_options(FigureOptions)
def figure(composed: FigureOptions) -> None:
    """Draw one or several stored results in one figure, by default as PNG, SVG and PDF.

    Examples:

    - `statmech figure --list`
    - `statmech figure results/ensemble figure=overlay`
    - `statmech figure results/ensemble --style pre --residuals --out paper`
    - `statmech figure results/ensemble --y eps_g,R --series rule`
    - `statmech figure results/svm results/minover results/bayes --y eps_g`
    """
    from statmech.cli import terminal_output

    if composed.list_all:
        return terminal_output.print_published_figures()
    if composed.config is None:
        raise ConfigError("figure needs a CONFIG, or --list")
    from figures.style import use_medium

    with use_medium(composed.style, composed.residuals):
        _draw_figure(composed, composed.config)


def _draw_figure(composed: FigureOptions, config: str) -> None:
    """Draw the results that the command `figure` names: of a single config, or of several in a common figure."""
    from statmech.cli import run_steps
    from statmech.cli.options_and_jobs import job_from_source

    further = composed.further or []
    configs = [config, *(argument for argument in further if "=" not in argument)]
    changes = [argument for argument in further if "=" in argument]
    if len(configs) > 1:
        return _draw_combined_figure(composed, configs, changes)
    job = job_from_source(ConfigOptions(config, changes, composed.set_overrides))
    results = run_steps.load_stored_results(job)
    if composed.figure_keys:
        results = replace(results, figure=_apply_figure_options(job, composed), command="")
    run_steps.draw_results(results, composed.formats, composed.out)


def _apply_figure_options(job: Job, composed: FigureOptions) -> Composition:
    """Return the keys of the config's figure that have options, updated by the options, without panels and guides."""
    from statmech.keys.figure_key import OPTION_KEYS, Composition, read_figure_composition

    kept_keys = {*OPTION_KEYS} if composed.y else {*OPTION_KEYS, "derive"}
    config_keys = job.figure.model_dump(include=kept_keys) if isinstance(job.figure, Composition) else {}
    return read_figure_composition({**config_keys, **composed.figure_keys})


def _draw_combined_figure(composed: FigureOptions, configs: list[str], changes: list[str]) -> None:
    """Draw the results of several configs in a common figure, for the command `figure`."""
    from statmech.cli import run_steps
    from statmech.cli.options_and_jobs import job_from_source
    from statmech.keys.figure_key import read_figure_composition

    jobs = [job_from_source(ConfigOptions(config, changes, composed.set_overrides)) for config in configs]
    names = [job.folder.name for job in jobs]
    labels = names if len({*names}) == len(names) else [str(job.folder) for job in jobs]
    if len({*labels}) < len(labels):
        raise ConfigError(f"{next(label for label in labels if labels.count(label) > 1)} is given twice")
    results_by_label = {label: run_steps.load_stored_results(job) for label, job in zip(labels, jobs, strict=True)}
    folder = composed.out or Path(os.path.commonpath([job.folder.absolute().parent for job in jobs]))
    run_steps.draw_several_results(
        results_by_label, read_figure_composition(composed.figure_keys), folder, composed.formats
    )


def explore(
    shown_source: Annotated[
        str | None,
        typer.Argument(
            metavar="RESULT|CONFIG|LINK", help="A folder of results, a config as for run, or a copied link."
        ),
    ] = None,
    overrides: OverrideArguments = None,
    settings: SetOption = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, metavar="PORT", help="Port to listen on.", show_default="5006, or any free one"
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    data_dir: DataFolderOption = None,
) -> None:
    """Open an interactive page in the browser, with sliders for theory and simulation. Needs statmech[explore].

    Examples:

    - `statmech explore`
    - `statmech explore ensemble`
    - `statmech explore results/ensemble`
    - `statmech explore 'http://127.0.0.1:5006/?rule=hebb&t=50&K=11&view.x=K'`
    """
    from figures.explorer.pages import explain_missing_page
    from statmech.cli import interrupts
    from statmech.cli.options_and_jobs import set_data_folder
    from statmech.config.config_files import get_shipped_config_name, load

    set_data_folder(data_dir)
    # the default text mentions resuming, which a server does not support
    interrupts.interrupt_message = "statmech explore: stopped"
    is_link = shown_source is not None and "?" in shown_source
    is_result = shown_source is not None and Path(shown_source).is_dir()
    changes = [*(overrides or []), *(settings or [])]
    if is_result and changes:
        raise ConfigError(f"{shown_source}: stored results have no keys to override")
    if is_link and changes:
        raise ConfigError("a link holds all keys: change them in the link")
    scenario = None if shown_source is None or is_result or is_link else load(shown_source, changes, data=True)
    if scenario is not None and (reason := explain_missing_page(scenario)):
        raise ConfigError(f"{shown_source}: {reason}")
    page, server, link_settings = _import_explorer()
    if is_result:
        server.serve(page.make_result_page_factory(Path(str(shown_source))), port, browser)
        return
    view = page.named(scenario, get_shipped_config_name(str(shown_source))) if scenario is not None else None
    opening = (None, link_settings.read(str(shown_source).partition("?")[2])) if is_link else (scenario, view)
    name = "" if is_link or shown_source is None else Path(shown_source).stem
    server.serve(page.make_scenario_page_factory(*opening, name), port, browser, partial(page.prepare, *opening))


def _import_explorer() -> tuple[Any, Any, Any]:
    """Import the page, its server and its links for the command `explore`.

    Raises `MissingExtraError` if a library is not installed.
    """
    require_modules("explore", "explore", "panel", "panel_material_ui", "bokeh")
    from figures.explorer import page, server, settings

    return page, server, settings


def status(folder: ResultFolderArgument, as_json: JsonOption = False) -> None:
    """Show the progress of a sweep: finished, running, failed and missing runs, their rate and the time left.

    Example: `statmech status results/ensemble`.
    """
    from statmech.config.config_files import check_results_not_in_subfolders
    from statmech.stores.store_status import format_status, read_status

    check_results_not_in_subfolders(folder)
    counts = read_status(folder)
    print(json.dumps(counts) if as_json else "\n".join(format_status(counts)))


def verify(
    folder: ResultFolderArgument,
    recompute: Annotated[
        int,
        typer.Option("--recompute", min=0, metavar="N", help="Parameter combinations per version to simulate again."),
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """Check that all stored numbers are intact and in the right order, and recompute a sample.

    The sample includes runs of every version of statmech that has contributed to the store. Prints one line per fault,
    and exits with 1 if there is a fault or the store is too old to be verified.

    Example: `statmech verify results/ensemble`.
    """
    from statmech.cli.run_steps import recompute_run_sample
    from statmech.config.config_files import check_results_not_in_subfolders
    from statmech.stores.store_status import verify_results

    check_results_not_in_subfolders(folder)
    outcome = verify_results(folder)
    if outcome.is_sound and outcome.done and recompute:
        outcome = recompute_run_sample(folder, outcome, recompute)
    print(json.dumps(outcome._asdict()) if as_json else "\n".join(outcome.lines()))
    if not outcome.is_sound:
        raise typer.Exit(1)


def report(
    folder: ResultFolderArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=parse_nonempty_path,
            metavar="FILE",
            help="The HTML file to write.",
            show_default="DIR/report.html",
        ),
    ] = None,
) -> None:
    """Write results as one self-contained HTML file: figure, charts, table, config, provenance, references.

    Example: `statmech report results/ensemble` after `statmech run ensemble`.
    """
    from figures.interactive.html_report import write_report
    from statmech.config.config_files import check_results_not_in_subfolders

    check_results_not_in_subfolders(folder)
    print(f"wrote {write_report(folder, out)}", file=sys.stderr)


def export(
    config: ConfigArgument,
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            parser=parse_nonempty_path,
            metavar="FILE",
            help="A .csv of means, errors and theory, or a .nc of all runs.",
        ),
    ],
    overrides: OverrideArguments = None,
    settings: SetOption = None,
) -> None:
    """Export stored results to a file for other programs.

    Example: `statmech export results/ensemble --to ensemble.csv` after `statmech run ensemble`.
    """
    from statmech.cli import run_steps
    from statmech.cli.options_and_jobs import job_from_source
    from statmech.results.export_and_citations import write_export

    write_export(run_steps.load_stored_results(job_from_source(ConfigOptions(config, overrides, settings))), None, to)
    print(f"wrote {to}", file=sys.stderr)


def cite(config: ConfigArgument, overrides: OverrideArguments = None) -> None:
    """Print the BibTeX entries for the rules, learners and theory of a config.

    Example: `statmech cite ensemble > references.bib`.
    """
    from statmech.config.config_files import load
    from statmech.results.export_and_citations import format_bibtex, get_citation_keys

    print(format_bibtex(get_citation_keys(load(config, overrides or []))))
