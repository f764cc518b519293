"""Commands that compute: run, simulate, theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statmech.cli.options import ComputeOptions, RunOptions, SimulateOptions, accept_options

if TYPE_CHECKING:
    from statmech.cli.execution import ExecutionSettings
    from statmech.cli.jobs import Job

DEFAULT_RUN_FIGURE_FORMATS = frozenset({"png"})  # default of `run`: SVG and PDF take longer than small simulations


@accept_options(RunOptions)
def run(options: RunOptions) -> None:
    """Simulate, solve, compare and draw, all from one config.

    The figure is drawn as PNG. `statmech figure` and --formats draw it as SVG and PDF as well.

    Examples:

    - `statmech run ensemble`
    - `statmech run my.yaml K=1,3,5 seeds=100 --out results/mine`
    """
    from statmech.cli import output, steps

    job, execution = _prepare_job_and_execution(options)
    if options.dry_run:
        return output.print_sweep_estimate(job.scenario, execution.memory, includes_drawing=not options.as_json)
    # checked before the simulation: a stored theory of another config is an error
    theory = None if job.scenario.unsolved else steps.load_stored_theory(job, options.fresh)
    outcome = steps.simulate_missing_runs(job, execution, options)
    if steps.can_compare_and_draw(job, execution) and not options.as_json:
        steps.compare_and_draw(job, theory, options.formats or DEFAULT_RUN_FIGURE_FORMATS)
    steps.exit_if_runs_failed(outcome)


@accept_options(SimulateOptions)
def simulate(options: SimulateOptions) -> None:
    """Simulate a scenario at finite N and store it as OUT/simulation.zarr.

    Example: `statmech simulate ensemble N=1000 seeds=64`.
    """
    from statmech.cli import output, steps

    job, execution = _prepare_job_and_execution(options)
    if options.dry_run:
        return output.print_sweep_estimate(job.scenario, execution.memory)
    steps.exit_if_runs_failed(steps.simulate_missing_runs(job, execution, options))


def _prepare_job_and_execution(options: SimulateOptions) -> tuple[Job, ExecutionSettings]:
    """Read and check the config, the data sets and the execution settings that the options select."""
    from statmech.cli.execution import execution_from_options
    from statmech.cli.jobs import job_from_source, set_data_folder

    set_data_folder(options.data_dir)
    return job_from_source(options, data=True), execution_from_options(options)


@accept_options(ComputeOptions)
def theory(options: ComputeOptions) -> None:
    """Solve a scenario in the limit N -> infinity and store it as OUT/theory.zarr.

    Example: `statmech theory ensemble t=1e6`.
    """
    from statmech.cli import steps
    from statmech.cli.jobs import job_from_source, set_data_folder

    set_data_folder(options.data_dir)
    job = job_from_source(options)
    if steps.load_stored_theory(job, options.fresh) is None:
        steps.solve_and_save_theory(job)
