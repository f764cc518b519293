"""Keyboard control of lecture mode: the browser sends the pressed keys to the page."""

from __future__ import annotations

from typing import ClassVar

import param
from panel.custom import JSComponent

SLIDER_STEPS_BY_ARROW_KEY = {"ArrowLeft": -1, "ArrowRight": 1}
CHART_STEPS_BY_PRESSED_KEY = {
    "ArrowUp": -1,
    "PageUp": -1,
    "ArrowDown": 1,
    "PageDown": 1,
}  # presentation remotes send PageUp and PageDown
LECTURE_MODE_HELP = "← → move the slider, ↑ ↓ turn to the next chart, Esc leaves"


class KeyListener(JSComponent):
    """Browser component that reports pressed keys.

    `pressed` holds the last key and a counter, so that a repeated key is a new value.
    """

    listening = param.Boolean(default=False)
    pressed = param.String(default="")
    _rename: ClassVar = {}
    _esm = """
    const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Escape"]
    export function render({model}) {
      let count = 0
      document.addEventListener("keydown", event => {
        if (!model.listening || !KEYS.includes(event.key)) return
        event.preventDefault()
        event.stopPropagation()
        model.pressed = `${event.key} ${++count}`
      }, true)
      return document.createElement("span")
    }
    """
