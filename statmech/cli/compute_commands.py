"""Commands that compute: `run`, `simulate`, `theory` and `predict`.

The command `statmech predict` predicts the learning curve of a data table. The other commands compute the results of a
config.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statmech.cli.options_and_jobs import (
    ComputeOptions,
    RunOptions,
    SimulateOptions,
    accept_options,
    parse_nonempty_path,
)
from statmech.cli.terminal_output import print
from statmech.errors import ConfigError
from statmech.inputs.table_columns import MissingPolicy

if TYPE_CHECKING:
    import numpy as np

    from statmech.cli.options_and_jobs import Job
    from statmech.cli.run_steps import ExecutionSettings

BEST_LAM_KEYWORD = "best"
NUM_DRAWN_CURVE_POINTS = 60


DEFAULT_RUN_FIGURE_FORMATS = frozenset({"png"})  # default of `run`: SVG and PDF take longer than small simulations


@accept_options(RunOptions)
def run(options: RunOptions) -> None:
    """Simulate, solve, compare and draw, all from one config.

    The figure is drawn as PNG. `statmech figure` and --formats draw it as SVG and PDF as well.

    Examples:

    - `statmech run ensemble`
    - `statmech run my.yaml K=1,3,5 seeds=100 --out results/mine`
    """
    from statmech.cli import run_steps, terminal_output

    job, execution = _prepare_job_and_execution(options)
    if options.dry_run:
        return terminal_output.print_sweep_estimate(
            job.scenario, execution.memory, includes_drawing=not options.as_json
        )
    # checked before the simulation: a stored theory of another config is an error
    theory = None if job.scenario.unsolved else run_steps.load_stored_theory(job, options.fresh)
    outcome = run_steps.simulate_missing_runs(job, execution, options)
    if run_steps.can_compare_and_draw(job, execution) and not options.as_json:
        run_steps.compare_and_draw(job, theory, options.formats or DEFAULT_RUN_FIGURE_FORMATS)
    run_steps.exit_if_runs_failed(outcome)


@accept_options(SimulateOptions)
def simulate(options: SimulateOptions) -> None:
    """Simulate a scenario at finite N and store it as OUT/simulation.zarr.

    Example: `statmech simulate ensemble N=1000 seeds=64`.
    """
    from statmech.cli import run_steps, terminal_output

    job, execution = _prepare_job_and_execution(options)
    if options.dry_run:
        return terminal_output.print_sweep_estimate(job.scenario, execution.memory)
    run_steps.exit_if_runs_failed(run_steps.simulate_missing_runs(job, execution, options))


def _prepare_job_and_execution(options: SimulateOptions) -> tuple[Job, ExecutionSettings]:
    """Read and check the config, data sets and execution settings of the commands `run` and `simulate`."""
    from statmech.cli.options_and_jobs import job_from_source, set_data_folder
    from statmech.cli.run_steps import execution_from_options

    set_data_folder(options.data_dir)
    return job_from_source(options, data=True), execution_from_options(options)


@accept_options(ComputeOptions)
def theory(options: ComputeOptions) -> None:
    """Solve a scenario in the limit N -> infinity and store it as OUT/theory.zarr.

    Example: `statmech theory ensemble t=1e6`.
    """
    from statmech.cli import run_steps
    from statmech.cli.options_and_jobs import job_from_source, set_data_folder

    set_data_folder(options.data_dir)
    job = job_from_source(options)
    if run_steps.load_stored_theory(job, options.fresh) is None:
        run_steps.solve_and_save_theory(job)


def predict(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A .csv, Parquet, Feather or Excel file, packed or not.")
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="COLUMN", help="Name or number (from 0) of the column to predict; -1 is the last."
        ),
    ] = "-1",
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="VALUE", help="Predict this value of the target against all others."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss", metavar="LOSS", help="Loss that is minimised.", show_default="logistic, for numbers square"
        ),
    ] = None,
    lam: Annotated[
        str, typer.Option("--lam", metavar="NUMBER|best", help="Strength of the penalty.")
    ] = BEST_LAM_KEYWORD,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples", metavar="P,P,...", help="Numbers of examples to predict at.", show_default="n/16 to 4 n"
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether the learner has an intercept.")
    ] = True,
    raw: Annotated[bool, typer.Option("--raw", help="Do not standardise columns.")] = False,
    fits: Annotated[
        bool, typer.Option("--fits/--no-fits", help="Measure how far theory is off, by fits to the table.")
    ] = True,
    check: Annotated[
        int, typer.Option("--check", min=0, metavar="SETS", help="Fit to this many random sets at each size as well.")
    ] = 0,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMN", help="Leave out this column, or a list A,B; may be repeated."),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option("--index-col", metavar="COLUMN|none", help="Index column.", show_default="recognised"),
    ] = None,
    missing: Annotated[
        MissingPolicy,
        typer.Option("--missing", help="Replace missing values by means, drop their rows, or refuse them."),
    ] = "mean",
    na: Annotated[
        list[str] | None, typer.Option("--na", metavar="WORD", help="A further word for missing values.")
    ] = None,
    sep: Annotated[
        str | None, typer.Option("--sep", metavar="TEXT", help="Separator.", show_default="recognised")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Encoding.", show_default="recognised")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row has names.", show_default="recognised"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=parse_nonempty_path,
            metavar="FILE",
            help="Picture to write.",
            show_default="TABLE-curve.png",
        ),
    ] = None,
) -> None:
    """Predict the error of a linear learner on fresh rows of a table at any number of examples.

    Prints a summary of the table, errors with bands, a verdict on their reliability, and the benefit of more rows.

    Examples:

    - `statmech predict table.csv --target label`
    - `statmech predict table.csv --target price --lam 0.1 --examples 100,1000 --drop id`
    """
    from figures.learning_curves import draw
    from figures.style import FIGURE_FORMATS, save_figure
    from statmech.inputs.real_tables import read_labelled_table
    from statmech.inputs.table_columns import ColumnOptions
    from statmech.inputs.table_files import TableFileFormat
    from statmech.learning_curve import LearningCurvePredictor
    from statmech.learning_curve_report import format_curve_report

    path = out or Path(f"{Path(table).stem}-curve.png")
    if path.suffix[1:] not in FIGURE_FORMATS:
        raise ConfigError(f"{path}: the name of a picture must end in .{', .'.join(FIGURE_FORMATS)}")
    file = TableFileFormat(sep, encoding, header, tuple(na or ()))
    options = ColumnOptions(tuple(drop or ()), index, missing)
    prepared = LearningCurvePredictor(
        read_labelled_table(table, target, file, options, positive=positive), loss, intercept, not raw
    )
    predict_curve = partial(prepared.predict, lam=_parse_lam(lam), fits=fits)
    curve = predict_curve(P=_parse_example_counts(examples), check=check)
    print(format_curve_report(curve))
    line = predict_curve(P=_choose_drawn_example_counts(curve.P.values))
    if line["eps_y" if "eps_y" in line else "mse"].notnull().any():
        [picture] = save_figure(draw(curve, line, Path(table).name), path.with_suffix(""), [path.suffix[1:]])
        print(f"wrote {picture}")


def _choose_drawn_example_counts(P: np.ndarray) -> list[int]:
    """Return the numbers of examples for the points of the curve that the command `predict` draws.

    They span the range of the predicted numbers, or a factor of two around a single number.
    """
    import numpy as np

    ends = (P[0], P[-1]) if len(P) > 1 else (max(P[0] // 2, 2), 2 * P[0])
    return np.unique(np.rint(np.geomspace(*ends, NUM_DRAWN_CURVE_POINTS)).astype(int)).tolist()


def _parse_lam(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # best, or refused when the table is read


def _parse_example_counts(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--examples must be integers separated by commas, not {text}") from None
