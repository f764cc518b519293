"""The explorer's part of the everyday table: theory of stored examples, a step of a drag, the first chart.

    python benchmarks/everyday_live.py              # without a browser, half a minute
    python benchmarks/everyday_live.py --browser    # also from the key to the painted chart, with Chromium
    python benchmarks/everyday_live.py --tiny       # a few steps of one drag: tests that it runs, not how fast

CPU time of this process, in milliseconds, as the median of steps whose values differ, so that nothing is kept from
before. In the browser wall time, with the smallest value beside the median, for other work on the machine delays it; no
simulation runs there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import timing

ROOT = Path(__file__).parent.parent
STEPS = 24
SHOWN = "R,q,eps_g,eps_g_majority_vote"
ALL = "hebb,perceptron,adatron"
TWO = "{spectrum: [0.2, 1.8]}"
POWERS = "{power_law: {decay: 1.5, teacher_decay: 1.75}}"
DRAGS = {
    "one rule": "rule=perceptron&t=50&K=3&N=1000&eta=0.5&view.x=t",
    "three rules": f"rule={ALL}&t=50&K=3&N=1000&eta=0.5&view.x=t",
    "three rules, four charts": f"rule={ALL}&t=50&K=3&N=1000&eta=0.5&view.x=t&view.show={SHOWN}",
    "one rule, inputs of two variances": f"rule=perceptron&t=50&K=3&N=1000&eta=0.5&view.x=t&inputs={TWO}",
    "three rules, inputs of two variances": f"rule={ALL}&t=50&K=3&N=1000&eta=0.5&view.x=t&inputs={TWO}",
    "one rule, inputs of a power law": f"rule=perceptron&t=50&K=3&N=1000&eta=0.5&view.x=t&inputs={POWERS}",
    "three rules against K": f"rule={ALL}&t=50&K=11&N=1000&eta=0.5&view.x=K",
}
ETA = 2  # the place of its slider among those on the page
WITHOUT_SIMULATION = (
    "import figures.explorer.live_scenario as live; live.REST = 10**8; from statmech.cli import main; main()"
)
TRACED = """
window.painted = 0
for (const name of ['stroke', 'fill', 'fillText', 'drawImage']) {
  const whole = CanvasRenderingContext2D.prototype[name]
  CanvasRenderingContext2D.prototype[name] = function(...given) {
    window.painted = performance.now()
    return whole.apply(this, given)
  }
}
window.addEventListener('keydown', event => { window.pressed = event.timeStamp }, true)
"""
DRAWN = """() => [...Bokeh.documents[0]._all_models.values()].some(it =>
  it.glyph && it.glyph.type === 'TYPE' && it.data_source.data.x.length && (it.name || 'TYPE' === 'MultiLine'))"""


def cpu_ms(calls: list[Callable[[], object]]) -> float:
    """The median CPU time of these calls, after the first two."""
    taken = []
    for call in calls:
        began = time.process_time()
        call()
        taken.append(1e3 * (time.process_time() - began))
    return statistics.median(taken[2:])


def minover_theory(steps: int) -> float:
    """One step of the flip, of MinOver against alpha, as the explorer asks its theory."""
    from figures.explorer import computation, settings
    from statmech.kinds.registry import scenario_from

    def solve(flip: float) -> object:
        given = {"learner": ["minover"], "alpha": 20, "N": 100, "epochs": 100, "flip": flip}
        return computation.solve_with_dense_grid(
            scenario_from(settings.expand_page_config("learner", given, "alpha")), "alpha"
        )

    return cpu_ms([lambda flip=flip: solve(flip) for flip in np.linspace(0, 0.2, steps).round(4)])  # type: ignore[misc]


def five_curves(steps: int) -> float:
    """Learning curves of the five learners at 200 alphas."""
    import theory

    return cpu_ms([lambda: theory.learning_curves(np.geomspace(0.1, 50, 200))] * steps)


class Sent:
    """Serialises what a step changes, as the server does for its browser."""

    def __init__(self) -> None:
        self.bytes = 0

    def _document_patched(self, event: Any) -> None:
        from bokeh.protocol.messages.patch_doc import patch_doc

        self.bytes += len(patch_doc.create([event]).content_json)


def drag(query: str, steps: int) -> tuple[float, float]:
    """The CPU time of a step of eta on the server, without the websocket, and the bytes that it sends."""
    import panel as pn
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer import computation
    from figures.explorer.page import ExplorerPage

    computation._solve_config.cache_clear()  # another preset has the same values
    pn.extension("mathjax")
    document, sent = Document(), Sent()
    with set_curdoc(document):
        page = ExplorerPage(query=parse_qsl(query))
        page.view().server_doc(document)
        page.source.scheduler.call_later = lambda *_: None  # nothing is simulated
        page.source.update()
        document.callbacks.on_change_dispatch_to(sent)
        slider = page.source.sliders["eta"]
        etas = (0.55 + 0.05 * np.arange(steps)).round(2).tolist()
        taken = cpu_ms([lambda eta=eta: setattr(slider, "value", eta) for eta in etas])  # type: ignore[misc]
        page.source.close()
    return taken, sent.bytes / steps


@contextmanager
def served(*command: str) -> Iterator[str]:
    """The address of an explorer in another process."""
    with socket.socket() as free, tempfile.TemporaryFile("w+") as output:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        whole = [sys.executable, *command, "explore", "--no-browser", "--port", port]
        process = subprocess.Popen(whole, cwd=ROOT, stdout=output, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            found = None
            while found is None:
                time.sleep(0.05)
                output.seek(0)
                found = re.search(r"http://\S+", output.read())
            yield found[0]
        finally:
            process.kill()
            process.wait()


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = started.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def drawn(browser: Any, address: str) -> tuple[Any, float]:
    """A page that shows theory, and the seconds it took."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.set_default_timeout(120_000)
    page.add_init_script(TRACED)
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("canvas")
    page.wait_for_function(DRAWN.replace("TYPE", "MultiLine"))
    return page, time.perf_counter() - began


def key_to_paint(browser: Any, address: str, query: str) -> list[float]:
    """Milliseconds from each key press to the last stroke on the charts, in increasing order."""
    page, _ = drawn(browser, f"{address}&{query}")
    page.wait_for_timeout(2000)
    page.locator("input[type=range]:visible").nth(ETA).focus()
    taken = []
    for _ in range(STEPS):
        page.keyboard.press("ArrowRight")
        page.wait_for_function("window.painted > window.pressed")
        page.wait_for_timeout(300)  # axes may follow
        taken.append(page.evaluate("window.painted - window.pressed"))
    page.close()
    return sorted(taken[4:])


def first_chart(browser: Any) -> tuple[float, float]:
    """Seconds from opening the page of an explorer that has just started, to theory and to the first simulation."""
    with served("-m", "statmech.cli") as address:
        began = time.perf_counter()
        page, theory = drawn(browser, address)
        page.wait_for_function(DRAWN.replace("TYPE", "Scatter").replace("'MultiLine'", "''"))
        return theory, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", action="store_true", help="also measure in Chromium")
    parser.add_argument("--tiny", action="store_true", help="toy size")
    given = parser.parse_args()
    steps = 4 if given.tiny else STEPS
    rows = [
        ["theory of MinOver in the explorer", minover_theory(steps)],
        ["five curves at 200 alphas", five_curves(steps)],
    ]
    timing.table("Theory of stored examples, CPU time", ["", "ms"], rows)
    rows = [[name, *drag(query, steps)] for name, query in [*DRAGS.items()][: 1 if given.tiny else None]]
    timing.table("A step of eta on the server, CPU time", ["", "ms", "bytes"], rows)
    if given.browser:
        with chromium() as browser:
            with served("-c", WITHOUT_SIMULATION) as address:
                painted = {name: key_to_paint(browser, address, query) for name, query in DRAGS.items()}
            seconds = [first_chart(browser) for _ in range(2)]
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        rows = [[name, statistics.median(taken), taken[0]] for name, taken in painted.items()]
        timing.table(f"From a key to the painted charts, {load}", ["", "median, ms", "smallest, ms"], rows)
        names = ["theory", "simulation"]
        timing.table(
            f"First chart, {load}", ["", *names], [["first start", *seconds[0]], ["second start", *seconds[1]]]
        )
    print(timing.machine())


if __name__ == "__main__":
    main()
