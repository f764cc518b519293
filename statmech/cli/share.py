"""Commands that share results: report, export, cite."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from statmech.cli.options import Config, Out, Overrides, ResultFolder, Settings, Source, parse_path
from statmech.cli.terminal import print


def report(
    folder: ResultFolder,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", parser=parse_path, metavar="FILE", help="The HTML file to write.", show_default="DIR/report.html"
        ),
    ] = None,
) -> None:
    """Write results as one self-contained HTML file: figure, charts, table, config, provenance, references.

    Example: `statmech report results/ensemble` after `statmech run ensemble`.
    """
    from figures.report.html import write_report as write
    from statmech.config import check_results_folder

    check_results_folder(folder)
    print(f"wrote {write(folder, out)}", file=sys.stderr)


def export(
    config: Config,
    to: Annotated[
        Path,
        typer.Option(
            "--to", parser=parse_path, metavar="FILE", help="A .csv of means, errors and theory, or a .nc of all runs."
        ),
    ],
    overrides: Overrides = None,
    out: Out = None,
    settings: Settings = None,
) -> None:
    """Export stored results to a file for other programs.

    Example: `statmech export results/ensemble --to ensemble.csv` after `statmech run ensemble`.
    """
    from statmech.cli import steps
    from statmech.cli.jobs import job_from_source
    from statmech.results import export as exports

    exports.write_export(steps.load_stored_results(job_from_source(Source(config, overrides, out, settings))), None, to)
    print(f"wrote {to}", file=sys.stderr)


def cite(config: Config, overrides: Overrides = None) -> None:
    """Print the BibTeX entries for the rules, learners and theory of a config.

    Example: `statmech cite ensemble > references.bib`.
    """
    from statmech import config as configs
    from statmech.results.citations import bibtex, get_citation_keys

    print(bibtex(get_citation_keys(configs.load(config, overrides or []))))
