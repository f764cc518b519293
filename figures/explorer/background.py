"""One simulation at a time, in a thread: a newer scenario ends an older one, first results come from few seeds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from statmech.errors import StatmechError

if TYPE_CHECKING:
    import xarray as xr

FIRST = 4  # seeds that are shown before all are done


class Superseded(Exception):
    """A newer scenario is to be played."""


def sentence(problem: BaseException) -> str:
    """What a page shows of an exception: its message, and its type where the message was not written for users.

    >>> sentence(StatmechError("rule: too fast")), sentence(ZeroDivisionError("division by zero"))
    ('rule: too fast', 'ZeroDivisionError: division by zero')
    """
    if isinstance(problem, StatmechError | MemoryError) and str(problem):
        return str(problem)
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


class Background:
    """Plays scenarios in a thread; `tell(dataset or None, message)` is called there, as results come."""

    def __init__(self, tell: Callable[[xr.Dataset | None, str], None]):
        self.tell = tell
        self.token = 0
        self.lock = threading.Lock()

    def play(self, scenario: Any) -> None:
        """Play this scenario, and no older one any more."""
        token = self.stop()
        threading.Thread(target=self._play, args=(scenario, token), daemon=True).start()

    def stop(self) -> int:
        """End what is played; the number of what may come next."""
        with self.lock:
            self.token += 1
            return self.token

    def _play(self, scenario: Any, token: int) -> None:
        try:
            for seeds in sorted({min(FIRST, scenario.seeds), scenario.seeds}):
                self._played(scenario.model_copy(update={"seeds": seeds}), token)
        except Superseded:
            return
        except BaseException as problem:  # a user's own rule may raise anything, and nobody else hears of it here
            if self.token == token:
                self.tell(None, sentence(problem))

    def _played(self, scenario: Any, token: int) -> None:
        from simulate import run

        def progress(done: int, total: int) -> None:
            self._told(token, None, f"simulating {scenario.seeds} seeds: {done / total:.0%}")

        self._told(token, None, f"simulating {scenario.seeds} seeds")
        made = run(scenario, progress)
        self._told(token, made, f"simulated {scenario.seeds} seeds")

    def _told(self, token: int, made: xr.Dataset | None, message: str) -> None:
        if self.token != token:
            raise Superseded
        self.tell(made, message)
