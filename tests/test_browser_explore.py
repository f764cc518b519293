"""The explorer in a browser: dragging moves the curve, simulation agrees, and the copied config redraws it."""

import csv
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from conftest import quick_environment, statmech

import theory
from figures.style import CURVE_COLOURS
from statmech.config import config_files
from statmech.stores import zarr_store

pytest.importorskip("panel", reason="the extra [explore] is not installed")
from figures.explorer import settings
from figures.explorer.page import complete_view

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to open the page in"),
    pytest.mark.slow,
    pytest.mark.quick,
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
    "--renderer-process-limit=1",
]
SECONDS = 90_000  # milliseconds: a machine may be busy

SHOWN = """(label) => {
  let found = null  // the newest: those it replaced are there for a while
  for (const model of Bokeh.documents[0]._all_models.values()) {
    if (model.type === "Figure" && model.name === label) {
      const sources = type => model.renderers.filter(it => it.glyph && it.glyph.type === type).map(it => it.data_source)
      const [held, lines] = sources("MultiLine").map(it => it.data).filter(it => "label" in it)
      const [, points] = sources("Scatter").map(it => it.data).filter(it => "low" in it)
      const list = it => Array.from(it)
      found = {
        held: list(held.y).length, hues: list(held.color), x: list(lines.x).map(list), theory: list(lines.y).map(list),
        labels: list(lines.label), at: list(points.x), points: list(points.y), low: list(points.low),
        names: list(points.label),
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
def context(browser):
    """A visitor who opens one page after the other: what the first has loaded need not be read again."""
    opened = browser.new_context()
    opened.grant_permissions(["clipboard-read", "clipboard-write"])
    return opened


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
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, env=quick_environment())
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


def query(view, **keys):
    """The query of a view of perceptrons with other values of some keys."""
    return "&" + settings.format_query(complete_view("rule", replace(view, config={**view.config, **keys})))


FIRST, PRESETS = settings.get_page_settings("rule").view, settings.get_page_settings("rule").preset_views
LARGE = {"engine": "vectors", "N": 100_000}  # a simulation would take too long to be started
UNSIMULATED = query(FIRST, **LARGE)


@pytest.fixture
def page(context, address):
    yield from opened(context, address + UNSIMULATED)


def opened(context, address, width=1300, height=900):
    """A page that has drawn its charts; at the end, no request went to other machines and there were no complaints.

    All open in one tab, which keeps the scripts that it has compiled.
    """
    page = context.pages[0] if context.pages else context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.set_default_timeout(SECONDS)
    requests, complaints = [], []
    heard = {
        "request": lambda request: requests.append(request.url),
        "console": lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None,
        "pageerror": lambda problem: complaints.append(str(problem)),
    }
    for event, hear in heard.items():
        page.on(event, hear)
    page.goto(address)
    page.wait_for_selector("canvas")
    yield page
    for event, hear in heard.items():
        page.remove_listener(event, hear)
    page.goto("about:blank")
    here = address.partition("?")[0]
    assert not [url for url in requests if not url.startswith((here, "data:", "blob:"))]
    assert not complaints


def shown(page, title, until, tries=900):
    """The contents of a chart, once they satisfy a condition."""
    for _ in range(tries):
        found = page.evaluate(SHOWN, title)
        if found is not None and until(found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"{title} never satisfied the condition: {found}")


def press_button(page, name, title, until):
    """Press a button until a chart shows its effect: a busy page that moves its controls meanwhile loses a press."""
    for _ in range(6):
        with suppress(playwright.TimeoutError):  # a button may vanish by its effect
            page.get_by_role("button", name=name).click(timeout=10_000)
        with suppress(AssertionError):
            return shown(page, title, until, 150)
    raise AssertionError(f"{name} has no effect")


def choose(page, label, option):
    page.get_by_role("combobox", name=label, exact=True).click()  # its list has the same label until it has closed
    page.get_by_role("menuitem", name=option).click()


def press(page, key, which=0):
    """Move the first slider, or another, by a key, as soon as the page listens."""
    slider = page.locator("input[type=range]:visible").nth(which)
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


FILTERED = """() => {
    const figures = [...Bokeh.documents[0]._all_models.values()].filter(model => model.type === "Figure");
    return figures.map(figure => getComputedStyle(Bokeh.index.find_one_by_id(figure.id).el).filter)
}"""


def brightness(page):
    """The brightness of the page below its head, 0 to 1."""
    from io import BytesIO

    from matplotlib.image import imread

    return float(np.median(imread(BytesIO(page.screenshot()))[100:, :, :3]))


def further(page):
    """Show the controls that are not always visible."""
    page.get_by_role("button", name="more").click()
    page.get_by_label("log y").wait_for()


def drawer(page):
    """Open the drawer with everything that does not stand above the charts."""
    page.locator("header button").first.click()
    page.get_by_role("button", name="Copy config").wait_for()


def deviations(found):
    """The points of a chart minus its theory there."""
    lines = dict(zip(found["labels"], zip(found["x"], found["theory"], strict=True), strict=True))
    return [
        point - np.interp(x, *lines[name])
        for name, x, point in zip(found["names"], found["at"], found["points"], strict=True)
    ]


def copied(page):
    drawer(page)
    page.get_by_role("button", name="Copy config").click()
    return page.evaluate("() => navigator.clipboard.readText()")


VOTE = "ε_g (vote)"
OVER_ONE = "ε_g (vote) / ε_g of one student"


def test_the_page_opens_on_learning_curves_and_its_simulation_agrees(context, address):
    for page in opened(context, address):
        found = shown(page, VOTE, lambda it: it["points"])
    error = np.subtract(found["points"], found["low"])
    assert found["labels"] == ["Hebbian", "perceptron", "AdaTron"]
    assert found["x"][0][0] == 0.1  # t
    assert found["x"][0][-1] == 50
    assert (error > 0).all()
    assert np.abs(deviations(found)).max() < 0.05  # N = 1000, 16 seeds


def test_errors_against_K_are_those_of_figure_3(context, address):
    for page in opened(context, address + query(PRESETS["Errors against K"], **LARGE)):
        found = shown(page, OVER_ONE, lambda it: it["x"] and it["x"][0] == list(range(1, 12)))  # K, each of them
    for line in found["theory"][:3]:  # covered parts follow
        np.testing.assert_allclose(line[0], 1)
        assert line[2] < 1  # three students err less than one


def test_more_than_half_of_the_screen_are_charts_and_nothing_of_them_is_below_it(context, address):
    for page in opened(context, address + UNSIMULATED, height=860):
        shown(page, VOTE, lambda it: it["theory"])
        page.wait_for_timeout(1000)
        boxes = [box.bounding_box() for box in page.locator("canvas.bk-layer").all()]
        areas = {(box["x"], box["y"]): box["width"] * box["height"] for box in boxes}
        assert sum(areas.values()) >= 0.58 * 1300 * 860
        assert all(box["y"] + box["height"] <= 861 for box in boxes)


def test_dragging_by_keyboard_moves_the_curve_and_the_copied_config_is_the_one_shown(page, tmp_path):
    before = shown(page, VOTE, lambda it: it["theory"])
    press(page, "ArrowRight")  # K = 4
    press(page, "ArrowRight")  # K = 5
    after = shown(page, VOTE, lambda it: it["theory"] != before["theory"] and "K=5" in page.url)
    (tmp_path / "copied.yaml").write_text(copied(page))
    scenario = config_files.load(tmp_path / "copied.yaml")
    assert scenario.K == 5
    solved = theory.solve(scenario)
    for rule, x, line in zip(scenario.rule, after["x"], after["theory"], strict=True):
        expected = solved.eps_g_majority_vote.sel(rule=rule)
        at = np.searchsorted(x, scenario.t)
        np.testing.assert_allclose(np.asarray(line)[at], expected, rtol=1e-6)

    small = ["rule=hebb", "engine=gram", "seeds=4", "N=100", "t=1,2"]
    assert statmech("run", tmp_path / "copied.yaml", *small, "--out", tmp_path / "made") == 0
    assert zarr_store.load(tmp_path / "made" / "simulation.zarr").sizes["seed"] == 4
    assert list((tmp_path / "made").glob("*.png"))


def test_a_slider_of_the_inputs_moves_the_curve_and_is_in_the_copied_config(page, tmp_path):
    isotropic = shown(page, VOTE, lambda it: it["theory"])
    further(page)
    choose(page, "inputs", "two variances")
    page.wait_for_url(re.compile("spectrum.*0.5"))
    before = shown(page, VOTE, lambda it: it["theory"] != isotropic["theory"])
    press(page, "ArrowRight", 2)  # the spread, after K and the rate
    page.wait_for_url(re.compile("spectrum.*0.45"))
    after = shown(page, VOTE, lambda it: it["theory"] != before["theory"])
    (tmp_path / "copied.yaml").write_text(copied(page))
    scenario = config_files.load(tmp_path / "copied.yaml")
    assert scenario.config()["inputs"] == {"spectrum": {"eigenvalues": [0.45, 1.55]}}
    solved = theory.solve(scenario).eps_g_majority_vote
    for rule, x, line in zip(scenario.rule, after["x"], after["theory"], strict=True):
        at = np.searchsorted(x, scenario.t)
        np.testing.assert_allclose(np.asarray(line)[at], solved.sel(rule=rule), rtol=1e-4)  # accuracy of a drag


def test_the_link_restores_the_page_and_a_bad_one_is_one_message(page):
    shown(page, VOTE, lambda it: it["theory"])
    press(page, "ArrowLeft")
    further(page)
    page.get_by_label("log y").click()
    page.wait_for_url(re.compile("view.log=x(&|$)"))
    page.wait_for_url(re.compile("K=2"))
    before = shown(page, VOTE, lambda it: it["theory"])
    page.reload()
    page.wait_for_selector("canvas")
    assert shown(page, VOTE, lambda it: it["theory"])["theory"] == before["theory"]
    page.goto(f"{page.url.partition('?')[0]}?rule=hebbb&t=50")
    page.get_by_role("alert").get_by_text("link").wait_for()
    shown(page, VOTE, lambda it: it["theory"])


def test_a_rule_is_removed_from_the_menu_and_added_again(page):
    assert len(shown(page, VOTE, lambda it: it["theory"])["labels"]) == 3
    page.get_by_role("combobox", name="rule", exact=True).click()
    for labels in (["Hebbian", "AdaTron"], ["Hebbian", "AdaTron", "perceptron"]):
        page.get_by_role("menuitem", name="perceptron", exact=True).or_(
            page.get_by_role("option", name="perceptron", exact=True)
        ).click()
        shown(page, VOTE, lambda it, labels=labels: {*it["labels"]} == {*labels})
    page.keyboard.press("Escape")


def test_a_bad_value_shows_a_message_and_leaves_the_curve(page):
    before = shown(page, VOTE, lambda it: it["theory"])
    drawer(page)
    page.get_by_label("other keys").fill("flip=0.7")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("flip").wait_for()
    assert page.evaluate(SHOWN, VOTE)["theory"] == before["theory"]
    page.get_by_label("other keys").fill("nonsense=1")
    page.keyboard.press("Enter")
    page.get_by_role("alert").get_by_text("nonsense").wait_for()


class TestOnOnePage:
    """Tests that go on where the one before has left the page, which is loaded once."""

    @pytest.fixture(scope="class")
    def page(self, context, address):
        yield from opened(context, address + UNSIMULATED)

    def test_a_held_curve_keeps_its_hue_and_logarithmic_axes_show_the_same_points(self, page):
        before = shown(page, VOTE, lambda it: it["theory"])
        further(page)
        held = press_button(page, "Hold to compare", VOTE, lambda it: it["held"])
        assert held["held"] == 3
        assert held["hues"] == [colour.lower() for colour in CURVE_COLOURS[:3]]
        page.get_by_label("log y").click()
        page.wait_for_timeout(1000)
        after = shown(page, VOTE, lambda it: it["theory"])
        assert after["theory"] == before["theory"]
        press_button(page, "Release", VOTE, lambda it: not it["held"])

    def test_in_lecture_mode_arrows_turn_to_one_chart_after_the_other_and_move_a_slider(self, page):
        shown(page, VOTE, lambda it: it["theory"])
        page.get_by_label("lecture").click()
        page.keyboard.press("ArrowRight")  # before the server answers
        page.wait_for_url(re.compile("K=4"))
        assert not page.locator("input[type=range]:visible").count()
        page.keyboard.press("Escape")
        page.locator("input[type=range]:visible").first.wait_for()

    def test_the_equations_follow_the_chosen_scenario(self, page):
        shown(page, VOTE, lambda it: it["theory"])
        page.get_by_role("button", name="Show the equations").click()  # beside the charts
        assert "Hebbian" in equations(page, 7)
        choose(page, "scenario", "stopping")
        shown(page, "decision error", lambda it: it["theory"])
        latex = equations(page, 4)
        assert "Brownian bridge" in latex
        assert "Hebbian" not in latex

    def test_R_lies_against_q_and_the_play_button_draws_along_t(self, page):
        choose(page, "preset", "Miyoshi et al., Figure 4")
        whole = shown(page, "q", lambda it: it["theory"] and len(it["theory"][0]) > 60)
        for R, q in zip(whole["x"], whole["theory"], strict=True):
            assert (np.diff(R) > 0).all()
            assert (np.asarray(q) >= np.square(R) - 1e-9).all()
        page.get_by_role("slider", name="at t").press(
            "Home"
        )  # no line is shown for a moment only, which a test may miss
        shown(page, "q", lambda it: it["theory"] and len(it["theory"][0]) == 1)
        page.get_by_role("button", name="▶").click()
        played = shown(page, "q", lambda it: it["theory"] and it["x"][0][-1] == whole["x"][0][-1])
        assert played["theory"] == whole["theory"]
        page.get_by_role("button", name="▶").wait_for()


def test_every_scenario_is_solved_and_simulated(page):
    labels = shown(page, VOTE, lambda it: it["theory"])["labels"]
    for scenario, title in (
        ("stored examples", "ε_g"),
        ("stopping", "decision error"),
        ("attentive perceptron", "ε_g"),
        ("boosting", "ε_g"),
    ):
        choose(page, "scenario", scenario)
        found = shown(page, title, lambda it, was=labels: it["theory"] and it["points"] and it["labels"] != was)
        labels = found["labels"]


BUSY = """
import time, weakref
from panel.io import document
from statmech.cli import main

class EveryOtherQuarter(weakref.WeakKeyDictionary):
    def __contains__(self, key):
        return int(4 * time.time()) % 2 == 0 or super().__contains__(key)

document._WRITE_BLOCK = EveryOtherQuarter()
main()
"""


def test_messages_that_are_made_while_others_are_sent_arrive_in_order(context):
    """Panel finds the websocket busy half of the time; a message that is overtaken is a complaint of the page."""
    for address in printed([sys.executable, "-c", BUSY, "explore", "--no-browser", "--port", str(free_port())]):
        for page in opened(context, address + UNSIMULATED):
            shown(page, VOTE, lambda it: it["theory"])
            for scenario, title in (("attentive perceptron", "ε_g"), ("stopping", "decision error")):
                choose(page, "scenario", scenario)
                shown(page, title, lambda it: it["theory"] and it["points"] and len(it["labels"]) != 3)


def test_the_results_shown_can_be_downloaded(context, address, tmp_path):
    import xarray as xr

    for page in opened(context, address):
        shown(page, VOTE, lambda it: it["points"])
        page.get_by_text("simulated 16 seeds").wait_for()
        drawer(page)
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


@pytest.mark.parametrize(("width", "rows"), [(1300, 1), (390, 3)])
def test_four_controls_of_equal_heights_lie_in_a_grid_and_a_key_shows_the_others(context, address, width, rows):
    for page in opened(context, address + UNSIMULATED, width, 850):
        shown(page, VOTE, lambda it: it["theory"])
        places = [page.get_by_role("combobox", name=name, exact=True).locator("..") for name in ("x", "rule")]
        places += [page.locator("input[type=range]:visible").nth(which).locator("../../../..") for which in (0, 1)]
        boxes = [place.bounding_box() for place in places]
        assert {round(box["height"]) for box in boxes} == {40}
        assert len({round(box["y"]) for box in boxes}) == rows
        menus = page.locator(".MuiSelect-select")
        assert menus.count() >= 4
        assert max(menus.evaluate_all("menus => menus.map(menu => menu.scrollWidth - menu.clientWidth)")) <= 0
        assert page.locator("input[type=range]:visible").count() == 2
        page.get_by_role("button", name="more").focus()
        page.keyboard.press("Enter")
        page.get_by_label("log y").wait_for()
        labels = [page.get_by_text(name, exact=True).bounding_box() for name in ("band of one run", "log y")]
        assert labels[0]["height"] == labels[1]["height"]  # one line
        assert page.locator("input[type=range]:visible").count() > 4
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        page.get_by_role("button", name="less").click()
        page.get_by_label("log y").wait_for(state="hidden")


def test_the_page_fits_a_phones_width_and_the_theme_turns_dark(context, address):
    for page in opened(context, address + UNSIMULATED, 390, 800):
        shown(page, VOTE, lambda it: it["theory"])
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
        header = page.locator("header .MuiSelect-select")
        assert header.evaluate_all("menus => menus.map(menu => getComputedStyle(menu).fontSize)") == ["13px"] * 2
        page.wait_for_timeout(1000)
        box = page.locator("canvas.bk-layer").first.bounding_box()
        assert box["y"] + box["height"] <= 800  # the page opens on its charts
        assert brightness(page) > 0.8
        page.get_by_role("button", name="Light or dark page").click()
        page.wait_for_timeout(1000)
        assert brightness(page) < 0.3
        assert not {*page.evaluate(FILTERED)} & {"none"}
        page.get_by_role("button", name="Light or dark page").click()
        page.wait_for_function(f"({FILTERED})().every(filter => filter === 'none')")
        page.evaluate("localStorage.clear()")  # where the theme is kept for the next page
        page.emulate_media(color_scheme="dark")  # a preference of the system
        page.reload()
        page.wait_for_selector("canvas")
        page.wait_for_timeout(1000)
        assert brightness(page) < 0.3
        page.emulate_media(color_scheme="light")
        page.evaluate("localStorage.clear()")


def test_a_stored_result_opens_with_its_axes_as_sliders(context, tmp_path):
    small = ["rule=hebb,adatron", "K=3,5", "N=100", "t=1,2,5", "seeds=4"]
    assert statmech("run", "learning_curves", *small, "--out", tmp_path / "result") == 0
    for address in served(str(tmp_path / "result")):
        for page in opened(context, address):
            found = shown(page, "ε_g (vote)", lambda it: it["theory"] and it["points"])
            stored = zarr_store.load(tmp_path / "result" / "theory.zarr")
            check_lines(found, stored.eps_g_majority_vote.sel(K=5))
            press(page, "ArrowLeft")
            other = shown(page, "ε_g (vote)", lambda it, was=found["theory"]: it["theory"] != was)
            check_lines(other, stored.eps_g_majority_vote.sel(K=3))


def check_lines(found, solved):
    """Lines are solved between the stored times, and pass through the values at these times."""
    assert len(found["x"][0]) > 20 * solved.sizes["t"]
    for x, y, values in zip(found["x"], found["theory"], solved.transpose("rule", "t").values, strict=True):
        np.testing.assert_allclose(np.interp(solved.t, x, y), values, rtol=1e-4)


CURRICULA = """
rule: hebb
tasks: 2
overlap: 0.5
switch: 10
flip: [{at: [0, 5], is: [0.2, 0]}, {at: [0, 5], is: [0, 0.2]}]
start: {length: 1, R: 0.1}
t: {linspace: [0, 20, 5]}
N: 1000
seeds: 4
"""
FALLS, RISES = "flip = 0.2 → 0 at t = 5", "flip = 0 → 0.2 at t = 5"


def test_the_switch_of_two_tasks_is_dragged_and_a_protocol_and_a_curriculum_are_chosen(context, tmp_path):
    """The share of each task and the flips are drawn below the errors, along the same t."""
    (tmp_path / "curricula.yaml").write_text(CURRICULA)
    for address in served(str(tmp_path / "curricula.yaml")):
        for page in opened(context, address, height=850):
            errors = shown(page, "ε_g", lambda it: it["points"])
            assert errors["labels"] == [f"{flip}, task {task}" for flip in (FALLS, RISES) for task in (1, 2)]
            assert np.abs(deviations(errors)).max() < 0.05
            shares, flips = (shown(page, title, lambda it: it["theory"]) for title in ("task share", "p_f"))
            assert shares["x"][0][-1] == flips["x"][0][-1] == errors["x"][0][-1] == 20
            assert flips["labels"] == [FALLS, RISES]  # the same for both tasks
            assert [(flip[0], flip[-1]) for flip in flips["theory"]] == [(0.2, 0), (0, 0.2)]
            boxes = [canvas.bounding_box() for canvas in page.locator("canvas.bk-layer").all()]
            above, *below = sorted({(box["y"], box["height"]) for box in boxes})
            assert len(below) == 2
            assert below[0][0] > above[0] + 0.5 * above[1]
            assert below[1][0] + below[1][1] <= 851

            press(page, "ArrowLeft", -1)
            moved = shown(page, "task share", lambda it, was=shares["theory"]: it["theory"] != was)
            assert np.array(moved["theory"][0]).sum() < np.array(shares["theory"][0]).sum()
            choose(page, "flip(t)", RISES.partition(" = ")[-1])
            [rises] = shown(page, "p_f", lambda it: len(it["theory"]) == 1)["theory"]
            assert (rises[0], rises[-1], {*rises}) == (0, 0.2, {0, 0.2})
            choose(page, "protocol", "interleaved")
            found = shown(page, "task share", lambda it: it["theory"] and {*it["theory"][0]} == {0.5})
            assert {*found["theory"][-1]} == {0.5}
            shown(page, "ε_g", lambda it: it["points"])


def test_the_page_is_reloaded_and_opened_by_its_token_alone(context, address):
    context.clear_cookies()
    page = context.pages[0]
    bare = address.partition("?")[0]
    assert page.goto(bare).status == 403
    assert "printed" in page.inner_text("body")
    page.goto(address + UNSIMULATED)
    page.wait_for_selector("canvas")
    page.reload()
    page.wait_for_selector("canvas")
    page.goto(bare + "?" + UNSIMULATED)  # the browser sends its cookie
    page.wait_for_selector("canvas")
    assert page.evaluate("document.cookie") == ""  # which scripts cannot read


EVIL = """</textarea></pre><img src=x onerror="window.owned=1"><script>window.owned=1</script>'$$<b>"""
HOSTILE = f"""
from dataclasses import dataclass
from statmech import Results, Scenario
from statmech.parameters.parameter_fields import parameter
from statmech.students.rules import RULES, Hebb

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
    from figures.explorer import page, server

    results = Results(scenario, simulate.run(scenario), theory.solve(scenario))

    def make_page():
        return page.ExplorerPage(stored=results) if page._get_query()[1:] else page.ExplorerPage(scenario)

    server.serve(make_page, None, False)
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The address of a page of live results; with any other key in its query, of stored ones."""
    script = tmp_path_factory.mktemp("hostile") / "hostile.py"
    script.write_text(HOSTILE)
    yield from printed([sys.executable, str(script)])


@pytest.mark.parametrize("kind", ["live", "stored"])
def test_names_that_contain_html_are_shown_and_not_executed(context, kind, hostile):
    for page in opened(context, hostile + "&stored=1" * (kind == "stored")):
        shown(page, "ε_g", lambda it: it["theory"] and it["points"] and EVIL in it["labels"])
        for box in page.locator("canvas").all()[:2]:
            for part in range(1, 20):  # past the curves, with the pointer
                place = box.bounding_box()
                page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] * part / 20)
        if kind == "live":
            drawer(page)
            page.get_by_label("other keys").fill("'![x](//evil)<img/src=x onerror=window.owned=1>'")
            page.keyboard.press("Enter")
            page.get_by_role("alert").get_by_text('"![x](//evil)<img/src"').wait_for()
        else:
            page.get_by_label("rule", exact=True).or_(page.get_by_label("along x", exact=True)).first.click()
        page.wait_for_timeout(1000)
        assert page.get_by_text(EVIL[:17], exact=False).count()  # the first line of a label
        assert page.evaluate("window.owned") is None
        assert not page.locator("img[src=x]").count()
