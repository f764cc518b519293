"""Simulation in a background thread: a new scenario replaces the current one, and a few seeds are shown first.

A compilation cannot be stopped, and a drag would queue one compilation for each value that it passes. Scenarios that
are superseded while another scenario is compiled therefore never start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from statmech.errors import StatmechError
from statmech.scenarios.base import AbstractScenario

if TYPE_CHECKING:
    import xarray as xr

NUM_PREVIEW_SEEDS = 4  # shown before the remaining seeds have finished


class SupersededError(Exception):
    """Exception that stops a simulation when a newer scenario is waiting."""


def describe_exception(problem: BaseException) -> str:
    """Return the text that a page shows for an exception.

    The text is the message alone if the message was written for users, and otherwise the type and the message.

    >>> describe_exception(StatmechError("rule: too fast")), describe_exception(ZeroDivisionError("division by zero"))
    ('rule: too fast', 'ZeroDivisionError: division by zero')
    """
    if isinstance(problem, StatmechError | MemoryError) and str(problem):
        return str(problem)
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


class BackgroundSimulator:
    """Simulator that runs scenarios in a thread.

    The thread calls `report(dataset or None, message)` when results arrive.
    """

    def __init__(self, report: Callable[[xr.Dataset | None, str], None]):
        self.report = report
        self.token = 0
        self.lock, self.search_lock, self.simulation_lock = threading.Lock(), threading.Lock(), threading.Lock()

    def start(self, scenario: AbstractScenario, preview_seeds: int = NUM_PREVIEW_SEEDS) -> None:
        """Start to simulate a scenario, and stop any simulation that is still running.

        The results of the `preview_seeds` seeds are shown before all seeds have finished.
        """
        token = self.stop()
        threading.Thread(target=self._simulate, args=(scenario, token, preview_seeds), daemon=True).start()

    def search_optimum(self, find_optimum: Callable[[], None], on_found: Callable[[], None]) -> None:
        """Run `find_optimum` in a thread, then call `on_found` unless a newer scenario has arrived.

        `find_optimum` takes long. It starts when an older search has ended.
        """
        token = self.stop()
        threading.Thread(target=self._run_search, args=(find_optimum, on_found, token), daemon=True).start()

    def stop(self) -> int:
        """Stop the simulation, and return the token that identifies the next one."""
        with self.lock:
            self.token += 1
            return self.token

    def _run_search(self, find_optimum: Callable[[], None], on_found: Callable[[], None], token: int) -> None:
        with self.search_lock:
            if self.token != token:
                return
            try:
                find_optimum()
            except BaseException as problem:
                self.report(None, describe_exception(problem))
                return
        if self.token == token:
            on_found()

    def _simulate(self, scenario: AbstractScenario, token: int, preview_seeds: int = NUM_PREVIEW_SEEDS) -> None:
        try:
            with self.simulation_lock:
                for seeds in sorted({min(preview_seeds, scenario.seeds), scenario.seeds}):
                    self._run_seeds(scenario.model_copy(update={"seeds": seeds}), token)
        except SupersededError:
            return
        except BaseException as problem:  # any exception in a rule that a user wrote would be lost in this thread
            if self.token == token:
                self.report(None, describe_exception(problem))

    def _run_seeds(self, scenario: AbstractScenario, token: int) -> None:
        from simulate import run

        def progress(num_done: int, total: int) -> None:
            self._report_if_newest(token, None, f"simulating {seeds}: {num_done / total:.0%}")

        seeds = f"{scenario.seeds} seed{'s' * (scenario.seeds > 1)}"
        self._report_if_newest(token, None, f"simulating {seeds}")
        simulation = run(scenario, progress, partial(self._check_newest, token))
        self._report_if_newest(token, simulation, f"simulated {seeds}")

    def _report_if_newest(self, token: int, simulation: xr.Dataset | None, message: str) -> None:
        self._check_newest(token)
        self.report(simulation, message)

    def _check_newest(self, token: int) -> None:
        """Raise `SupersededError` if a newer scenario has been started."""
        if self.token != token:
            raise SupersededError
