"""Commands that compute: run, simulate, theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statmech.cli.options import Computation, Run, SimulationRun, takes

if TYPE_CHECKING:
    from statmech.cli.execution import Execution
    from statmech.cli.jobs import Job

LOOK = frozenset({"png"})  # SVG and PDF take longer than most small simulations


@takes(Run)
def run(options: Run) -> None:
    """Simulate, solve, compare and draw, all from one config.

    The figure is drawn as PNG. `statmech figure` and --formats draw it as SVG and PDF as well.

    Examples:

    - `statmech run ensemble`
    - `statmech run my.yaml K=1,3,5 seeds=100 --out results/mine`
    """
    from statmech.cli import output, steps

    job, execution = _prepare(options)
    if options.dry_run:
        return output.estimate(job.scenario, execution.memory, drawn=not options.as_json)
    # before the simulation, because a stored theory of another config is an error
    theory = None if job.scenario.unsolved else steps.stored_theory(job, options.fresh)
    outcome = steps.simulate(job, execution, options)
    if steps.can_show(job, outcome, execution) and not options.as_json:
        steps.show(job, theory, options.formats or LOOK)
    steps.end(outcome)


@takes(SimulationRun)
def simulate(options: SimulationRun) -> None:
    """Simulate a scenario at finite N and store it as OUT/simulation.zarr.

    Example: `statmech simulate ensemble N=1000 seeds=64`.
    """
    from statmech.cli import output, steps

    job, execution = _prepare(options)
    if options.dry_run:
        return output.estimate(job.scenario, execution.memory)
    steps.end(steps.simulate(job, execution, options))


def _prepare(options: SimulationRun) -> tuple[Job, Execution]:
    """Read and check the config, the data sets and the execution that the options name."""
    from statmech.cli.execution import execution_of
    from statmech.cli.jobs import job_of, use_data

    use_data(options.data_dir)
    return job_of(options, data=True), execution_of(options)


@takes(Computation)
def theory(options: Computation) -> None:
    """Solve a scenario in the limit N -> infinity and store it as OUT/theory.zarr.

    Example: `statmech theory ensemble t=1e6`.
    """
    from statmech.cli import steps
    from statmech.cli.jobs import job_of, use_data

    use_data(options.data_dir)
    job = job_of(options)
    if steps.stored_theory(job, options.fresh) is None:
        steps.solve(job)
