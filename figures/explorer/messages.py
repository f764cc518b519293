"""Messages to the browser in the order in which they were made.

While a message is being sent, Panel writes the next one at once, but sends it later: Bokeh's own messages overtake it,
and name models that the browser does not know ("reference p1478 isn't known").
"""

from __future__ import annotations

from typing import Any

from panel.io import document


def keep_order() -> None:
    """Let Bokeh, which waits until it can send, have the messages that Panel would send later."""
    setattr(document, "schedule_write_events", _left_to_bokeh)  # noqa: B010 - of another type


def _left_to_bokeh(*arguments: Any) -> None:
    """Refuse a message: `panel.io.unlocked` then gives its changes to Bokeh."""
    raise RuntimeError("Bokeh sends this message")
