"""Background simulation in a thread: a newer scenario stops an older one, and a few seeds are shown first.

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

FIRST = 4  # results of these seeds are shown before all have finished


class Superseded(Exception):
    """Signals that a newer scenario is waiting to be simulated."""


def sentence(problem: BaseException) -> str:
    """Return the text that a page shows for an exception.

    The text is the message alone if the message was written for users, and otherwise the type and the message.

    >>> sentence(StatmechError("rule: too fast")), sentence(ZeroDivisionError("division by zero"))
    ('rule: too fast', 'ZeroDivisionError: division by zero')
    """
    if isinstance(problem, StatmechError | MemoryError) and str(problem):
        return str(problem)
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


class Background:
    """Simulator that runs scenarios in a thread.

    The thread calls `report(dataset or None, message)` when results arrive.
    """

    def __init__(self, report: Callable[[xr.Dataset | None, str], None]):
        self.report = report
        self.token = 0
        self.lock, self.searching, self.simulating = threading.Lock(), threading.Lock(), threading.Lock()

    def start(self, scenario: AbstractScenario, first: int = FIRST) -> None:
        """Start to simulate a scenario and stop the simulation of any older one.

        The results of the `first` seeds are shown before all seeds have finished.
        """
        token = self.stop()
        threading.Thread(target=self._simulate, args=(scenario, token, first), daemon=True).start()

    def search(self, find: Callable[[], None], found: Callable[[], None]) -> None:
        """Run `find` in a thread, then call `found` unless a newer scenario has arrived.

        `find` takes long. It starts when an older search has ended.
        """
        token = self.stop()
        threading.Thread(target=self._search, args=(find, found, token), daemon=True).start()

    def stop(self) -> int:
        """Stop the simulation and return the number of the next simulation."""
        with self.lock:
            self.token += 1
            return self.token

    def _search(self, find: Callable[[], None], found: Callable[[], None], token: int) -> None:
        with self.searching:
            if self.token != token:
                return
            try:
                find()
            except BaseException as problem:
                self.report(None, sentence(problem))
                return
        if self.token == token:
            found()

    def _simulate(self, scenario: AbstractScenario, token: int, first: int = FIRST) -> None:
        try:
            with self.simulating:
                for seeds in sorted({min(first, scenario.seeds), scenario.seeds}):
                    self._simulate_seeds(scenario.model_copy(update={"seeds": seeds}), token)
        except Superseded:
            return
        except BaseException as problem:  # a user's rule may raise any exception, and nothing else reports it here
            if self.token == token:
                self.report(None, sentence(problem))

    def _simulate_seeds(self, scenario: AbstractScenario, token: int) -> None:
        from simulate import run

        def progress(done: int, total: int) -> None:
            self._report(token, None, f"simulating {seeds}: {done / total:.0%}")

        seeds = f"{scenario.seeds} seed{'s' * (scenario.seeds > 1)}"
        self._report(token, None, f"simulating {seeds}")
        simulation = run(scenario, progress, partial(self._check_newest, token))
        self._report(token, simulation, f"simulated {seeds}")

    def _report(self, token: int, simulation: xr.Dataset | None, message: str) -> None:
        self._check_newest(token)
        self.report(simulation, message)

    def _check_newest(self, token: int) -> None:
        """Raise `Superseded` if a newer scenario has been started."""
        if self.token != token:
            raise Superseded
