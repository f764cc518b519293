"""Delayed calls in the thread of a page.

The document makes the calls in a browser, and the event loop in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
from tornado.ioloop import IOLoop


class CallScheduler:
    """Scheduler of calls in the thread of a page, after a delay or as soon as possible."""

    def __init__(self) -> None:
        self.document: Any = pn.state.curdoc
        self.loop = None if self.document is not None else IOLoop.current()

    def call_later(self, milliseconds: int, function: Callable[[], None]) -> None:
        """Call a function after a delay."""
        if self.loop is None:
            self.document.add_timeout_callback(function, milliseconds)
        else:
            self.loop.call_later(milliseconds / 1000, function)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function in the page's thread as soon as possible.

        This method may be called in any thread.
        """
        if self.loop is None:
            self.document.add_next_tick_callback(function)
        else:
            self.loop.add_callback(function)
