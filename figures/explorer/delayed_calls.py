"""Calls that are made later, in the thread of the page: by its document in a browser, by the loop in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
from tornado.ioloop import IOLoop


class Clock:
    """Calls functions after some time, or from another thread as soon as possible."""

    def __init__(self) -> None:
        self.document: Any = pn.state.curdoc
        self.loop = None if self.document is not None else IOLoop.current()

    def later(self, milliseconds: int, call: Callable[[], None]) -> None:
        """Call a function after some time."""
        if self.loop is None:
            self.document.add_timeout_callback(call, milliseconds)
        else:
            self.loop.call_later(milliseconds / 1000, call)

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function in the page's thread, from any thread."""
        if self.loop is None:
            self.document.add_next_tick_callback(call)
        else:
            self.loop.add_callback(call)
