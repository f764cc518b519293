"""The explorer in a browser: dragging moves the curve, simulation agrees, and the copied config redraws it."""

import csv
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import theory
from statmech import config
from statmech.results import store

pytest.importorskip("panel", reason="the extra [explore] is not installed")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to open the page in"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
SECONDS = 90_000  # milliseconds: a machine may be busy

SHOWN = """(title) => {
  let found = null  // the newest: those it replaced are there for a while
  for (const model of Bokeh.documents[0]._all_models.values()) {
    if (model.type === "Figure" && model.title.text === title) {
      const groups = model.renderers.filter(it => it.glyph && ["MultiLine", "Scatter"].includes(it.glyph.type))
      const data = groups.map(it => it.data_source.data)
      const list = it => Array.from(it)
      found = {
        held: list(data[0].y).length, x: list(data[2].x).map(list), theory: list(data[2].y).map(list),
        labels: list(data[2].label), points: list(data[3].y), low: list(data[3].low),
      }
    }
  }
  return found
}"""


EQUATIONS = (
    """() => [...Bokeh.documents[0]._all_models.values()].filter(it => /MathJax/.test(it.type)).map(it => it.text)"""
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address():
    yield from served()


def served(*arguments):
    """The address, with its token, of an explorer in another process."""
    yield from printed(
        [sys.executable, "-m", "statmech.cli", "explore", *arguments, "--no-browser", "--port", str(free_port())]
    )


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def printed(command):
    """The address that a command prints; its output goes to a file because a pipe would fill up."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        try:
            yield until_printed(output)
        finally:
            process.kill()
            process.wait()


def until_printed(output):
    for _ in range(450):
        output.seek(0)
        if found := re.search(r"http://\S+", output.read()):
            return found[0]
        time.sleep(0.2)
    raise AssertionError("no address is printed")


@pytest.fixture
def page(browser, address):
    yield from opened(browser, address)


def opened(browser, address, **context):
    """A page that has drawn its charts; at the end, no request went to other machines and there were no complaints."""
    context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **context})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.goto(address)
    page.wait_for_selector("canvas")
    yield page
    context.close()
    here = address.partition("?")[0]
    assert not [url for url in requests if not url.startswith((here, "data:", "blob:"))]
    assert not complaints


def shown(page, title, until):
    """The contents of a chart, once they satisfy a condition."""
    for _ in range(450):
        found = page.evaluate(SHOWN, title)
        if found is not None and until(found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"{title} never satisfied the condition: {found}")


def choose(page, label, option):
    page.get_by_label(label, exact=True).click()
    page.get_by_role("menuitem", name=option).click()


def press(page, key):
    """Move the first slider by a key, as soon as the page listens."""
    slider = page.locator("input[type=range]").first
    before = slider.get_attribute("aria-valuenow")
    for _ in range(30):
        slider.focus()
        page.keyboard.press(key)
        page.wait_for_timeout(300)
        if slider.get_attribute("aria-valuenow") != before:
            return
    raise AssertionError(f"the slider stays at {before}")


def equations(page, number):
    """The LaTeX of the displayed equations, once there are `number` of them."""
    for _ in range(450):
        if page.locator("mjx-container").count() == number:
            return " ".join(page.evaluate(EQUATIONS)[-number:])
        time.sleep(0.2)
    raise AssertionError(f"there are never {number} equations")


def brightness(page):
    """The brightness of the page below its head, 0 to 1."""
    from io import BytesIO

    from matplotlib.image import imread

    return float(np.median(imread(BytesIO(page.screenshot()))[100:, :, :3]))


def copied(page):
    page.get_by_role("button", name="Copy config").click()
    return page.evaluate("() => navigator.clipboard.readText()")


def test_the_page_opens_with_theory_and_a_simulation_that_agrees(page):
    found = shown(page, "ε_g", lambda it: it["points"])
    theory_there = np.concatenate(found["theory"])
    error = np.subtract(found["points"], found["low"])
    assert found["labels"] == ["hebb", "perceptron", "adatron"]
    assert (error > 0).all()
    assert np.abs(np.subtract(found["points"], theory_there)).max() < 0.05  # N = 1000, and 4 seeds at first


def test_dragging_by_keyboard_moves_the_curve_and_the_copied_config_is_the_one_shown(page, tmp_path):
    before = shown(page, "ε_g (vote)", lambda it: it["theory"])
    press(page, "ArrowLeft")  # K = 3, then 2 (4 would not do: with random tie-breaking it votes like 3)
    after = shown(page, "ε_g (vote)", lambda it: it["theory"] != before["theory"] and it["points"])
    (tmp_path / "copied.yaml").write_text(copied(page))
    scenario = config.load(tmp_path / "copied.yaml")
    assert scenario.K == 2
    solved = theory.solve(scenario)
    np.testing.assert_allclose(after["theory"], solved.eps_g_majority_vote, rtol=1e-7)
    np.testing.assert_allclose(after["x"][0], solved.t)

    command = [sys.executable, "-m", "statmech.cli", "run", "copied.yaml", "seeds=4", "--out", "made"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert store.load(tmp_path / "made" / "simulation.zarr").sizes["seed"] == 4
    assert list((tmp_path / "made").glob("*.png"))


def test_a_bad_value_shows_a_message_and_leaves_the_curve(page):
    before = shown(page, "ε_g", lambda it: it["theory"])
    page.get_by_label("other keys").fill("flip=0.7")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("flip").wait_for()
    assert page.evaluate(SHOWN, "ε_g")["theory"] == before["theory"]
    page.get_by_label("other keys").fill("nonsense=1")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("nonsense").wait_for()


def test_the_equations_follow_the_chosen_scenario(page):
    assert "hebb" in equations(page, 7)
    choose(page, "scenario", "stopping")
    latex = equations(page, 4)
    assert "brownian-bridge" in latex
    assert "hebb" not in latex


@pytest.mark.parametrize(
    ("scenario", "title"),
    [("stored examples", "ε_g"), ("stopping", "decision error"), ("attentive perceptron", "ε_g"), ("boosting", "ε_g")],
)
def test_every_scenario_is_solved_and_simulated(page, scenario, title):
    shown(page, "ε_g", lambda it: it["theory"])
    choose(page, "scenario", scenario)
    shown(page, title, lambda it: it["theory"] and it["points"] and it["labels"] != ["hebb", "perceptron", "adatron"])


def test_a_pinned_curve_stays_in_grey_and_logarithmic_axes_show_the_same_points(page):
    before = shown(page, "ε_g", lambda it: it["theory"])
    page.get_by_role("button", name="Hold to compare").click()
    assert shown(page, "ε_g", lambda it: it["held"])["held"] == 3
    page.get_by_label("log y").click()
    page.wait_for_timeout(1000)
    after = shown(page, "ε_g", lambda it: it["theory"])
    assert after["theory"] == before["theory"]
    page.get_by_role("button", name="Release").click()
    shown(page, "ε_g", lambda it: not it["held"])


def test_the_results_shown_can_be_downloaded(page, tmp_path):
    import xarray as xr

    shown(page, "ε_g", lambda it: it["points"])
    page.get_by_text("simulated 16 seeds").wait_for()
    for suffix, begins in (
        ("png", b"\x89PNG"),
        ("svg", b"<?xml"),
        ("csv", b"rule,"),
        ("nc", b"CDF"),
        ("yaml", b"rule:"),
    ):
        with page.expect_download() as awaited:
            page.get_by_role("link", name=f"Download {suffix}").or_(
                page.get_by_role("button", name=f"Download {suffix}")
            ).first.click()
        awaited.value.save_as(tmp_path / f"made.{suffix}")
        assert (tmp_path / f"made.{suffix}").read_bytes().startswith(begins), suffix
    rows = list(csv.DictReader((tmp_path / "made.csv").open()))
    assert {row["variable"] for row in rows} >= {"R", "eps_g"}
    with xr.open_dataset(tmp_path / "made.nc", engine="scipy") as found:
        assert found.sizes["seed"] == 16


def test_the_page_fits_a_phones_width_and_the_theme_turns_dark(browser, address):
    opening = opened(browser, address, viewport={"width": 390, "height": 800})
    page = next(opening)
    shown(page, "ε_g", lambda it: it["theory"])
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.mouse.click(380, 400)  # beside the drawer
    page.wait_for_timeout(1000)
    assert brightness(page) > 0.8
    page.get_by_role("button", name="Toggle theme").click()
    page.wait_for_timeout(1000)
    assert brightness(page) < 0.3
    next(opening, None)


def test_a_stored_result_opens_with_its_axes_as_sliders(browser, tmp_path):
    made = [sys.executable, "-m", "statmech.cli", "run", "learning_curves"]
    small = ["rule=hebb,adatron", "K=1,3,5", "N=100", "t=1,2,5", "seeds=4", "--out", str(tmp_path / "result")]
    subprocess.run([*made, *small], check=True, capture_output=True, env={**os.environ})
    for address in served(str(tmp_path / "result")):
        for page in opened(browser, address):
            found = shown(page, "ε_g (vote)", lambda it: it["theory"] and it["points"])
            stored = store.load(tmp_path / "result" / "theory.zarr")
            np.testing.assert_allclose(found["theory"], stored.eps_g_majority_vote.sel(K=5))
            press(page, "ArrowLeft")
            other = shown(page, "ε_g (vote)", lambda it, was=found["theory"]: it["theory"] != was)
            np.testing.assert_allclose(other["theory"], stored.eps_g_majority_vote.sel(K=3))


def test_the_page_is_reloaded_and_opened_by_its_token_alone(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    bare = address.partition("?")[0]
    assert page.goto(bare).status == 403
    assert "printed" in page.inner_text("body")
    for _ in range(2):
        page.goto(address)
        page.wait_for_selector("canvas")
    page.reload()
    page.wait_for_selector("canvas")
    page.goto(bare)  # the browser sends its cookie
    page.wait_for_selector("canvas")
    assert page.evaluate("document.cookie") == ""  # which scripts cannot read
    context.close()


EVIL = """</textarea></pre><img src=x onerror="window.owned=1"><script>window.owned=1</script>'$$<b>"""
HOSTILE = f"""
import sys
from dataclasses import dataclass
from statmech import Results, Scenario
from statmech.parameters import parameter
from statmech.rules import RULES, Hebb

EVIL = {EVIL!r}

@dataclass(frozen=True)
class Hostile(Hebb):
    label = EVIL
    caution: float = parameter(0.5, EVIL, above=0.0, below=1.0)
    equation = r"\\frac{{" + EVIL

RULES[EVIL] = Hostile
scenario = Scenario(rule=["hebb", EVIL], N=50, t=[0.5, 1.0, 2.0], seeds=4)
if __name__ == "__main__":
    import simulate
    import theory
    from statmech.explore import page, server

    results = Results(scenario, simulate.run(scenario), theory.solve(scenario))
    make = {{"live": lambda: page.Page(scenario), "stored": lambda: page.Page(stored=results)}}[sys.argv[1]]
    server.serve(make, None, False)
"""


@pytest.mark.parametrize("kind", ["live", "stored"])
def test_names_that_contain_html_are_shown_and_not_executed(browser, kind, tmp_path):
    (tmp_path / "hostile.py").write_text(HOSTILE)
    for address in printed([sys.executable, str(tmp_path / "hostile.py"), kind]):
        for page in opened(browser, address):
            shown(page, "ε_g", lambda it: it["theory"] and it["points"] and EVIL in it["labels"])
            for box in page.locator("canvas").all()[:2]:
                for part in range(1, 20):  # past the curves, with the pointer
                    place = box.bounding_box()
                    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] * part / 20)
            if kind == "live":
                page.get_by_label("other keys").fill("'![x](//evil)<img/src=x onerror=window.owned=1>'")
                page.keyboard.press("Enter")
                page.get_by_role("alert").get_by_text('"![x](//evil)<img/src"').wait_for()
            else:
                page.get_by_label("rule", exact=True).or_(page.get_by_label("along x", exact=True)).first.click()
            page.wait_for_timeout(1000)
            assert page.get_by_text(EVIL, exact=False).count()
            assert page.evaluate("window.owned") is None
            assert not page.locator("img[src=x]").count()
