"""Commands that share results: report, export, cite."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from statmech.cli.options import (
    ConfigArgument,
    ConfigOptions,
    OutputFolderOption,
    OverrideArguments,
    ResultFolderArgument,
    SetOption,
    parse_nonempty_path,
)
from statmech.cli.terminal import print


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
    from figures.report.html import write_report as write
    from statmech.config import check_results_not_in_subfolders

    check_results_not_in_subfolders(folder)
    print(f"wrote {write(folder, out)}", file=sys.stderr)


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
    out: OutputFolderOption = None,
    settings: SetOption = None,
) -> None:
    """Export stored results to a file for other programs.

    Example: `statmech export results/ensemble --to ensemble.csv` after `statmech run ensemble`.
    """
    from statmech.cli import steps
    from statmech.cli.jobs import job_from_source
    from statmech.results import export as exports

    exports.write_export(
        steps.load_stored_results(job_from_source(ConfigOptions(config, overrides, out, settings))), None, to
    )
    print(f"wrote {to}", file=sys.stderr)


def cite(config: ConfigArgument, overrides: OverrideArguments = None) -> None:
    """Print the BibTeX entries for the rules, learners and theory of a config.

    Example: `statmech cite ensemble > references.bib`.
    """
    from statmech import config as configs
    from statmech.results.citations import format_bibtex, get_citation_keys

    print(format_bibtex(get_citation_keys(configs.load(config, overrides or []))))
