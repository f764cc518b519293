"""The explorer's page of a scenario or of stored results, for a browser or a notebook.

Layout: the main controls in one row, further ones behind a button, charts below, and everything else in a drawer.

Keyboard: in lecture mode the browser sends the pressed keys to the page.
"""

from __future__ import annotations

import contextlib
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import panel as pn
import panel_material_ui as pmui
import param
from panel.custom import JSComponent
from panel.links import Callback
from panel.util.parameters import edit_readonly

import figures
from figures import derived_data
from figures.explorer import computation, key_menus, settings
from figures.explorer.chart_content import StoredResultsControls
from figures.explorer.computation import describe_exception
from figures.explorer.live_scenario import ScenarioControls
from figures.explorer.page_charts import ExplorerCharts
from figures.explorer.pages import View, explain_missing_page
from figures.explorer.sliders import CELL_STYLE
from figures.interactive.typeface import FONT_STACK
from figures.labels import kind_label
from figures.style import STYLE_SETTINGS
from statmech.config import config_files
from statmech.errors import ConfigError
from statmech.keys.scenario import AbstractScenario, get_kinds
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results import export_and_citations
from statmech.results.results import Results, load_results

SLIDER_STEPS_BY_ARROW_KEY = {"ArrowLeft": -1, "ArrowRight": 1}
CHART_STEPS_BY_PRESSED_KEY = {
    "ArrowUp": -1,
    "PageUp": -1,
    "ArrowDown": 1,
    "PageDown": 1,
}  # presentation remotes send PageUp and PageDown
LECTURE_MODE_HELP = "← → move the slider, ↑ ↓ turn to the next chart, Esc leaves"


class KeyListener(JSComponent):
    """Browser component that reports pressed keys and the size of the area of the charts.

    `pressed` holds the last key and a counter, so that a repeated key is a new value. `size` holds the width and the
    height of the area in pixels.
    """

    listening = param.Boolean(default=False)
    pressed = param.String(default="")
    size = param.List(default=[])
    _rename: ClassVar = {}
    _esm = """
    const TITLES = {
      "Open drawer": "Open the settings", "Close drawer": "Close the settings", "Toggle theme": "Light or dark page",
      "Open contextbar": "Show the equations", "Close contextbar": "Hide the equations"
    }
    function renameButtons(root) {  // the names of Panel's buttons are terms of its layout
      for (const part of root.querySelectorAll("[aria-label], .MuiTooltip-tooltip"))
        for (const name of ["ariaLabel", "textContent"]) if (part[name] in TITLES) part[name] = TITLES[part[name]]
    }
    const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Escape"]
    export function render({model, el}) {
      let count = 0
      model.on("after_render", () => {
        let root = el.getRootNode().host.getRootNode()
        const area = root.querySelector(".charts")
        while (root.host?.getRootNode().host) root = root.host.getRootNode()
        renameButtons(root)
        new MutationObserver(() => renameButtons(root)).observe(root, {childList: true, subtree: true})
        if (area) new ResizeObserver(() => { model.size = [area.clientWidth, area.clientHeight] }).observe(area)
        const page = window.Bokeh.documents.flatMap(doc => doc.roots()).find(root => root.class_name === "Page")
        if (page && matchMedia("(prefers-color-scheme: dark)").matches) page.data.dark_theme = true
      })
      document.addEventListener("keydown", event => {
        if (!model.listening || !KEYS.includes(event.key)) return
        event.preventDefault()
        event.stopPropagation()
        model.pressed = `${event.key} ${++count}`
      }, true)
      return document.createElement("span")
    }
    """


NAMED_EQUATION_LATEX = r"\begin{array}{l}\text{%s:}\\ %s\end{array}"
EQUATION_CSS = {"overflow-x": "auto", "max-width": "100%", "font-size": "90%"}
EQUATION_PANE_OPTIONS: dict[str, Any] = {"renderer": "mathjax", "styles": EQUATION_CSS, "margin": (2, 16)}
COPY_TEXT_JS = "navigator.clipboard.writeText(text.value)"
COPY_LINK_JS = "navigator.clipboard.writeText(location.origin + location.pathname + '?' + text.value)"
# Panel's Location adds an entry to the browser's history at each change, and its page ignores the back button
UPDATE_ADDRESS_JS = "history.replaceState(null, '', '?' + cb_obj.value)"
NOTEBOOK_CHART_HEIGHT_PIXELS = 460  # height of the charts in a notebook
NO_PRESET_LABEL = "(as chosen)"
HEADER_TEXT_COLOUR, HEADER_GAP_PIXELS = "rgba(255, 255, 255, 0.85)", 24
DRAWER_STYLE = {  # the drawer is above the header, and needs no space for it
    "MuiDrawer": {"styleOverrides": {"paper": {"&.sidebar > .MuiToolbar-root": {"min-height": "8px", "height": "8px"}}}}
}
HEADER_MENU_STYLE = {  # menus on the coloured bar
    "& .MuiOutlinedInput-root": {"color": "white !important"},
    "& .MuiOutlinedInput-notchedOutline": {"borderColor": f"{HEADER_TEXT_COLOUR} !important"},
    "& .MuiSvgIcon-root": {"color": HEADER_TEXT_COLOUR},
}
NOTICE_STYLE = {
    "py": "0",
    "& .MuiAlert-icon, & .MuiAlert-message": {"py": "4px"},
    "& p": {"m": "0"},
}  # compact, so that a notice takes one line
STATUS_BAR_MIN_HEIGHT = "48px"  # room for two lines of text, so that a second line does not move the charts
PROGRESS_STYLE = {"opacity": "0.85", "line-height": "1.3"}
NARROW_MENU_CSS = """
@media (max-width: 600px) {
  :host { width: calc(100% - 12px) !important; max-width: none !important; margin: 8px 6px 4px !important }
  .MuiSelect-select { white-space: normal !important; font-size: 13px !important; line-height: 1.2 !important }
  .MuiSelect-select { padding: 7px 28px 5px 12px !important }
}
"""
HIDE_ON_PHONE_CSS = "@media (max-width: 600px) { :host { display: none } }"  # phone screens are too narrow
NARROW_PAGE_STYLE = {  # phone screens are too narrow for the title, and for menus next to each other
    "@media (max-width: 600px)": {
        "& .title": {"display": "none"},
        "& .MuiAppBar-root .MuiToolbar-root > .MuiBox-root": {"flex-direction": "column", "align-items": "stretch"},
        "& .MuiToolbar-root": {"min-height": "100px"},
    }
}
FILL_WINDOW_STYLE = {"flex": "1 1 0", "min-height": "0", "overflow": "hidden auto"}  # fills the rest of the window
CONTROL_GRID_CSS = """
:host { flex: none; padding: 8px 8px 0; box-sizing: border-box }
div[id^="flexbox"] {
  display: grid !important; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr));
  grid-auto-flow: dense; gap: 8px 12px; align-items: end;
}
"""
TOGGLE_STYLE = {"height": "40px", "justify-content": "flex-start", "font-size": "1rem"}
TOGGLE_MORE_JS = """
more.visible = !more.visible
button.data.label = more.visible ? "less ▴" : "more ▾"
"""


class ExplorerPage:
    """The page of one visitor: a scenario with sliders, or stored results.

    In a notebook the page has no frame. `query` is the query of the address that opened the page
    (`figures.explorer.settings`).
    """

    def __init__(
        self,
        scenario: AbstractScenario | None = None,
        stored: Results | None = None,
        view: View | None = None,
        query: Sequence[tuple[str, str]] = (),
        inline: bool = False,
        name: str = "",
    ):
        self.inline, self.name = inline, name
        self.charts = ExplorerCharts(self._update_link, NOTEBOOK_CHART_HEIGHT_PIXELS if inline else 0)
        self.message = pmui.Alert(
            "", severity="info", visible=False, sizing_mode="stretch_width", margin=(2, 8), sx=NOTICE_STYLE
        )
        self.progress, self.progress_text = pn.pane.HTML("", styles=PROGRESS_STYLE, margin=(4, 8)), ""
        self.shows_arrow_key_hint = False  # in lecture mode, after an arrow key
        self.equations = pmui.Column(sizing_mode="stretch_width")
        self.text = pn.pane.HTML("", sizing_mode="stretch_width")
        self.yaml = pn.widgets.TextAreaInput(visible=False)  # text for the clipboard
        self.link = pn.widgets.TextAreaInput(visible=False)  # query of the address
        grid: dict[str, Any] = {"sizing_mode": "stretch_width", "stylesheets": [CONTROL_GRID_CSS], "margin": 0}
        self.row, self.further = pn.FlexBox(**grid), pn.FlexBox(visible=False, **grid)
        self.toggle = pmui.Button(label="more ▾", variant="text", sx=TOGGLE_STYLE, **CELL_STYLE)
        self.toggle.js_on_click(args={"more": self.further, "button": self.toggle}, code=TOGGLE_MORE_JS)
        self.controls = pn.Column(
            self.row, self.further, sizing_mode="stretch_width", margin=0, styles={"flex": "none"}
        )
        self.strip = pn.FlexBox(styles={"width": "auto", "white-space": "nowrap"}, align_items="center", margin=0)
        self.more = pmui.Column(sizing_mode="stretch_width")
        self.menus: list[Any] = []
        self.keys = KeyListener()
        self.lecture = self._make_lecture_switch()
        self.opening_query = ""  # query of the preset that is shown, until its first results
        self.downloads = self._make_download_buttons()
        self.source: Any = None
        self.are_controls_sent = False  # True once the browser has received the controls
        self.whole: Any = None
        if stored is not None:
            title = f"<span style='color: {HEADER_TEXT_COLOUR}'>stored results: <b>{html.escape(name)}</b></span>"
            style: dict[str, Any] = {"margin": (6, 18, 6, HEADER_GAP_PIXELS), "styles": {"align-self": "center"}}
            self.menus = [pn.pane.HTML(title, **style), self.lecture]
            self._set_source(StoredResultsControls(stored, self._show_results))
        else:
            self._open_scenario(scenario, view, query)

    def view(self) -> Any:
        """Return the page for Panel to serve."""
        self.link.jscallback(value=UPDATE_ADDRESS_JS)
        # no busy indicator, because it would redraw the whole page twice at every step of a drag
        self.whole = pmui.Page(
            title="statmech",
            header=self.menus,
            sidebar=self._make_drawer(),
            main=[self._make_main_area()],
            contextbar=[pmui.Typography("Equations", variant="h6", margin=(16, 16, 4, 16)), self.equations],
            contextbar_width=380,
            contextbar_open=False,
            contextbar_variant="auto",  # next to the charts, or on top on a phone
            sidebar_width=340,
            sidebar_open=False,
            sidebar_variant="temporary",
            busy_indicator=None,
            sx=NARROW_PAGE_STYLE,
            theme_config={"typography": {"fontFamily": FONT_STACK}, "components": DRAWER_STYLE},
        )
        self.whole.get_root = partial(_exempt_charts_from_theme, self.whole.get_root)
        with edit_readonly(self.whole):  # saves 20 ms per step: Panel would walk through all models of the page twice
            self.whole.busy = False
        return self.whole

    def make_notebook_view(self) -> Any:
        """Return the page for a notebook cell."""
        more = pmui.Accordion(("More", pmui.Column(*self._make_drawer())), sizing_mode="stretch_width")
        self.whole = pn.Column(
            pn.FlexBox(*self.menus), self._make_main_area(), more, sizing_mode="stretch_width", min_width=600
        )
        return self.whole

    def _make_main_area(self) -> Any:
        bar = pn.FlexBox(
            self.charts.legend,
            self.progress,
            self.strip,
            sizing_mode="stretch_width",
            align_items="center",
            margin=0,
            styles={"min-height": STATUS_BAR_MIN_HEIGHT},
        )
        hidden = [self.yaml, self.link, self.keys]  # not in the drawer, which is created only when it opens
        size: dict[str, Any] = {"sizing_mode": "stretch_width"} if self.inline else {"sizing_mode": "stretch_both"}
        return pn.Column(
            self.controls,
            bar,
            self.message,
            self.charts.area,
            self.charts.notes,
            *hidden,
            margin=0,
            **size,
            styles={} if self.inline else FILL_WINDOW_STYLE,
        )

    def _make_drawer(self) -> list[Any]:
        copy_link = self._make_copy_button("Copy link", self.link, COPY_LINK_JS)
        links = [] if self.inline or isinstance(self.source, StoredResultsControls) else [copy_link]
        return [
            *self.charts.switches,
            self.more,
            *([self._make_card("Equations", self.equations)] if self.inline else []),
            self._make_card(
                "Config", self._make_copy_button("Copy config", self.yaml, COPY_TEXT_JS), *links, self.text
            ),
            self._make_card("Download", pmui.FlexBox(*self.downloads, gap="4px")),
        ]

    def close(self) -> None:
        """Stop the simulation of this page and release its memory.

        Panel's state keeps the frame of every page, as the frame watches whether the server is busy. Nested parts keep
        their models, and thus the whole document: 2.4 MB per page. Panel's registry keeps links whose targets lead to
        their source.
        """
        self.source.close()
        for linked in (self.toggle, self.lecture):
            Callback.registry.pop(linked, None)
        if self.whole is not None:
            for part in self.whole.select():
                part._models, part._documents, part._model_parents = {}, {}, {}  # the third is new in Panel 1.10
            self.whole.param.update(main=[], sidebar=[], header=[], **({} if self.inline else {"contextbar": []}))

    @staticmethod
    def _make_card(title: str, *parts: Any) -> Any:
        return pmui.Card(*parts, title=title, collapsible=True, sizing_mode="stretch_width", margin=(0, 8, 12, 0))

    def _open_scenario(
        self, scenario: AbstractScenario | None, view: View | None, query: Sequence[tuple[str, str]]
    ) -> None:
        problem = ""
        try:
            view = settings.read(query, list_scenario_files(scenario)) or view
        except ConfigError as failure:
            problem = describe_exception(failure)
        choice, view = choose_opening_page(scenario, view)
        self._make_header_menus(choice, view)
        is_same_kind = scenario is not None and settings.get_page_kind(scenario) == choice
        functions = key_menus.list_time_function_values(scenario) if is_same_kind else {}
        self.open_initial_view = partial(self._open_view, choice, view, functions)
        self.open_initial_view()
        if problem:
            self._show_message("warning", problem)

    def _make_header_menus(self, kind_name: str, view: View) -> None:
        titles = {get_kinds()[name].TITLE: name for name in settings.get_page_settings_by_kind()}
        presets = {title: (name, view) for name in titles.values() for title, view in get_presets(name).items()}
        menu_options: dict[str, Any] = {
            "size": "small",
            "sizing_mode": "stretch_width",
            "sx": {} if self.inline else HEADER_MENU_STYLE,
            "stylesheets": [NARROW_MENU_CSS]
            if self.inline
            else [NARROW_MENU_CSS, f"label {{ color: {HEADER_TEXT_COLOUR} !important }}"],
        }
        left = (6, 6, 6, HEADER_GAP_PIXELS)
        self.kind = pmui.Select(
            label="scenario", options=titles, value=kind_name, **menu_options, max_width=300, margin=left
        )
        equal = (title for title in get_presets(kind_name) if complete_view(*presets[title]) == view)
        opened = self.name or next(equal, NO_PRESET_LABEL)
        names = dict.fromkeys([NO_PRESET_LABEL, opened, *presets])
        self.preset = pmui.Select(
            label="preset", options=[*names], value=opened, **menu_options, max_width=310, margin=(6, 6)
        )
        self.menus = [self.kind, self.preset, self.lecture]

        def turn(event: Any) -> None:
            if event.new != self.source.choice:
                self._open_view(event.new, complete_view(event.new, settings.get_page_settings(event.new).view))

        def take(event: Any) -> None:
            if event.new in presets:
                name, view = presets[event.new]
                self._open_view(name, complete_view(name, view))
                self.kind.value = name
            elif event.new == self.name:
                self.open_initial_view()
                self.kind.value = self.source.choice

        self.kind.param.watch(turn, "value")
        self.preset.param.watch(take, "value")

    def _make_lecture_switch(self) -> Any:
        """Return the switch of lecture mode, with the listener to keys."""
        style: dict[str, Any] = {} if self.inline else {"sx": {"color": "white"}}
        lecture = pmui.Switch(label="lecture", margin=(6, 6), stylesheets=[HIDE_ON_PHONE_CSS], **style)
        lecture.jslink(self.keys, value="listening")  # keys pressed before the server answers count
        lecture.param.watch(lambda event: self._set_lecture_mode(event.new), "value")
        self.keys.param.watch(lambda event: self._handle_key(event.new), "pressed")
        self.keys.param.watch(lambda event: self.charts.fit_area(*event.new), "size")
        return lecture

    def _set_lecture_mode(self, enabled: bool) -> None:
        """Start or stop lecture mode.

        Its arrow keys move a slider and change the chart.
        """
        self.charts.set_lecture_mode(enabled)
        self.controls.visible = self.strip.visible = not enabled
        self.shows_arrow_key_hint = False
        self.progress.object = html.escape(LECTURE_MODE_HELP if enabled else self.progress_text)

    def _handle_key(self, pressed: str) -> None:
        key = pressed.partition(" ")[0]
        if key == "Escape":
            self.lecture.value = False
        elif key in CHART_STEPS_BY_PRESSED_KEY:
            self.charts.turn_chart(CHART_STEPS_BY_PRESSED_KEY[key])
        elif key in SLIDER_STEPS_BY_ARROW_KEY:
            self.source.move_last_slider(SLIDER_STEPS_BY_ARROW_KEY[key])
            self.shows_arrow_key_hint = True
            self._update_arrow_key_hint()

    def _update_arrow_key_hint(self) -> None:
        """Show the slider that the arrow keys move, with its present value."""
        if self.shows_arrow_key_hint:
            self.progress.object = html.escape(self.source.arrow_key_hint)

    def _open_view(self, kind_name: str, view: View, functions: dict[str, list[Any]] | None = None) -> None:
        """Open a page of this kind of scenario with a view.

        The menus offer the functions of time of its config.
        """
        self.message.visible = False
        self.charts.page_note = settings.get_page_settings(kind_name).note
        self.charts.apply_view(view)
        self.opening_query = ""
        live = ScenarioControls(
            view, kind_name, self._show_results, self._show_config_and_equations, self._show_message, functions
        )
        self._set_source(live)
        if self.inline:
            live.scheduler.call_later(1, live.update)
        else:
            pn.state.onload(live.update)

    def _set_source(self, source: ScenarioControls | StoredResultsControls) -> None:
        if self.source is not None:
            self.source.close()
        self.source, self.are_controls_sent = source, False
        self.row.objects = [*source.row, self.toggle]
        self.further.objects = [*source.further_controls, *self.charts.bar]
        button = [source.simulate_anyway] if isinstance(source, ScenarioControls) else []
        self.strip.objects = [self.charts.release, *button]
        self.more.objects = source.more
        if isinstance(source, StoredResultsControls):
            source.update()
            self._show_config_and_equations()

    def _show_results(self) -> None:
        """Show the current results of the source, in one message to the browser.

        The first results of a source are sent after its controls. An earlier message would name models that the browser
        does not know.
        """
        at_once = self._send_at_once()
        self.are_controls_sent = True
        with at_once:
            self.charts.show(self.source.chart_content)
            self._update_arrow_key_hint()
            for button in self.downloads[:2]:  # a picture needs simulation and theory
                button.disabled = not self.source.results.complete

    def _send_at_once(self) -> contextlib.AbstractContextManager[None]:
        """Return a context whose changes are sent to the browser at its end, once the controls have been sent."""
        return pn.io.unlocked() if self.are_controls_sent else contextlib.nullcontext()

    def _update_link(self) -> None:
        """Write the settings into the address, so that reloading restores the page."""
        if isinstance(self.source, ScenarioControls) and hasattr(self.source, "scenario"):
            query = settings.format_query(replace(self.source.view, **self.charts.view))
            if self.opening_query not in ("", query):
                self.preset.value = NO_PRESET_LABEL
            self.link.value = self.opening_query = query

    def _show_config_and_equations(self) -> None:
        """Show the config, its link and the equations, and fit the charts to their curves."""
        self.charts.fit_y_limits()
        self._update_link()
        scenario = self.source.scenario
        self.yaml.value = config_files.format_config(scenario)
        self.text.object = f"<pre style='white-space:pre-wrap'>{html.escape(self.yaml.value)}</pre>"
        equations_by_name = {name: scenario.get_equation(name) for name in scenario.list_chosen_class_names()}
        kinds = scenario.classes()
        named_equations = (
            NAMED_EQUATION_LATEX % (_sanitise_latex_name(kind_label(kinds, name)), equation)
            for name, equation in equations_by_name.items()
            if equation
        )
        equations = [_sanitise_equation(equation) for equation in (*scenario.displayed_equations, *named_equations)]
        if equations != [pane.name for pane in self.equations]:
            self.equations.objects = [
                pn.pane.LaTeX(f"$${equation}$$", name=equation, **EQUATION_PANE_OPTIONS) for equation in equations
            ]

    def _show_message(self, severity: str, message: str) -> None:
        """Show a message, or the progress of the simulation.

        An empty message removes an error.
        """
        if severity == "progress":
            self.progress_text, self.shows_arrow_key_hint = message, False
            with self._send_at_once():  # a solution may follow that takes seconds
                self.progress.object = html.escape(message)
            return
        if message:
            self.message.param.update(object=_escape_markup(message), severity=severity, visible=True)
        elif self.message.severity == "error":  # an empty message means that the error is corrected
            self.message.visible = False

    @staticmethod
    def _make_copy_button(label: str, text: Any, code: str) -> Any:
        button = pmui.Button(label=label, variant="outlined", size="small")
        button.js_on_click(args={"text": text}, code=code)
        return button

    def _make_download_buttons(self) -> list[Any]:
        files: dict[str, Callable[[], Any]] = {
            "png": partial(self._render_figure, "png"),
            "svg": partial(self._render_figure, "svg"),
            "csv": lambda: io.BytesIO(
                export_and_citations.make_csv(computation.solve_to_full_accuracy(self.source.results))
            ),
            "nc": lambda: io.BytesIO(
                export_and_citations.make_netcdf(computation.solve_to_full_accuracy(self.source.results))
            ),
            "yaml": lambda: io.StringIO(config_files.format_config(self.source.scenario)),
        }
        return [
            pmui.FileDownload(
                callback=make, filename=f"statmech.{suffix}", label=f"Download {suffix}", variant="outlined"
            )
            for suffix, make in files.items()
        ]

    def _render_figure(self, suffix: str) -> io.BytesIO:
        """Draw the figure that `statmech figure` would draw, and return it as a file."""
        import matplotlib as mpl

        results = self.source.results
        choice = results.scenario.CHOICE
        picture = io.BytesIO()
        with mpl.rc_context(STYLE_SETTINGS):
            figures.draw_with_fallback(figures.choose_figure(results.figure, "", choice), results).figure.savefig(
                picture, format=suffix
            )
        picture.seek(0)
        return picture


def _escape_markup(text: str) -> str:
    """Escape all characters that Markdown or HTML would interpret.

    >>> _escape_markup("eta: <b>")
    'eta&#58; &#60;b&#62;'
    """
    return "".join(
        character if character.isalnum() or character.isspace() else f"&#{ord(character)};" for character in text
    )


def _sanitise_latex_name(name: str) -> str:
    """Replace the characters of a name that are special in LaTeX or HTML."""
    return "".join(character if character.isalnum() or character in " _-.,:+()" else "?" for character in name)


def _sanitise_equation(equation: str) -> str:
    """Replace characters in a LaTeX equation that HTML would interpret."""
    return equation.replace("$$", "").replace("<", r"\lt ").replace(">", r"\gt ")


def get_presets(kind_name: str) -> dict[str, View]:
    """Return the predefined views of a kind of scenario, by title."""
    return dict(settings.get_page_settings(kind_name).preset_views)


def complete_view(kind_name: str, view: View) -> View:
    """Complete the config of a view with the initial values of its page."""
    config = {**settings.get_page_settings(kind_name).start, **view.config}
    return settings.check_and_complete_view(
        replace(view, config={name: v for name, v in config.items() if v is not None}), kind_name
    )


def choose_opening_page(scenario: AbstractScenario | None = None, view: View | None = None) -> tuple[str, View]:
    """Return the scenario kind and the view of a new page."""
    if view is not None and view.config:
        return settings.find_page_kind(view.config), view
    if scenario is not None:
        return settings.get_page_kind(scenario), make_opening_view(scenario, view)
    choice = next(iter(settings.get_page_settings_by_kind()))
    return choice, complete_view(choice, settings.get_page_settings(choice).view)


def list_scenario_files(scenario: AbstractScenario | None) -> list[Any]:
    """Return the files that a scenario names, which its pages may also name."""
    return [] if scenario is None else settings.files(scenario.config())


def prepare(scenario: AbstractScenario | None = None, view: View | None = None) -> None:
    """Solve the theory of an opening page while the browser starts.

    The page itself shows any error.
    """
    choice, view = choose_opening_page(scenario, view)
    with contextlib.suppress(Exception):  # a user's rule may raise any exception
        x = view.x or get_kinds()[choice].USUAL_X_KEY
        opened_scenario = scenario_from(settings.expand_page_config(choice, view.config, x))
        if not computation.has_unknown_optimum(opened_scenario):
            computation.solve_with_dense_grid(opened_scenario, settings.get_x_key(choice, x))


def make_opening_view(scenario: AbstractScenario, view: View | None = None) -> View:
    """Return the initial view of a scenario.

    The view is the view of its figure, if that has one. Otherwise the swept key is on the x axis.
    """
    page = settings.get_page_settings(settings.get_page_kind(scenario))
    page_views = [page.view, *page.preset_views.values()]
    view = view or next((page_view for page_view in page_views if scenario.figure in page_view.figures), None)
    x = view.x if view is not None and view.x else settings.choose_abscissa_key(scenario)
    default_view = (
        page.view if x == (page.view.x or scenario.USUAL_X_KEY) else View(log=settings.get_log_x_axis(scenario, x))
    )
    if getattr(scenario, "K", None) == 1:
        single = {name: variable.single_student_variable for name, variable in scenario.variables.items()}
        names = dict.fromkeys(single.get(name) or name for name in default_view.show)
        default_view = replace(default_view, show=tuple(names))
    if controls := derived_data.describe_time_dependent_keys(scenario):
        # with several tasks the page also shows their order
        shown_variables = default_view.show if page.curves else default_view.show[:1]
        default_view = replace(
            default_view,
            show=(*shown_variables, *controls),
            log=(*settings.get_log_x_axis(scenario, x), *_get_log_y(default_view)),
        )
    return replace(view or default_view, config=settings.reduce_config(scenario, x), x=x)


def _get_log_y(view: View) -> tuple[str, ...]:
    return tuple(name for name in view.log if name == "y")


def named(scenario: AbstractScenario, config_name: str) -> View | None:
    """Return the view of a published figure by the name of its shipped config, or None."""
    page = settings.get_page_settings(settings.get_page_kind(scenario))
    return next(
        (
            replace(page_view, config={})
            for page_view in (page.view, *page.preset_views.values())
            if config_name in page_view.figures
        ),
        None,
    )


def explore(source: AbstractScenario | Results | str | Path | None, overrides: dict[str, Any]) -> Any:
    """Return controls and charts of a scenario or of results for a notebook (`statmech.explore`)."""
    pn.extension("mathjax")  # needed in a notebook, without effect elsewhere
    if isinstance(source, Results):
        return ExplorerPage(stored=source, inline=True).make_notebook_view()
    return ExplorerPage(view=_make_notebook_opening(source, overrides), inline=True).make_notebook_view()


def _make_notebook_opening(source: AbstractScenario | str | Path | None, overrides: dict[str, Any]) -> View:
    """Return the initial view of a notebook. Raises `ConfigError` for a scenario without a page."""
    if source is None:
        choice, page = next(iter(settings.get_page_settings_by_kind().items()))
        return complete_view(choice, replace(page.view, config={**page.view.config, **overrides}))
    scenario = source if isinstance(source, AbstractScenario) else config_files.load(source, data=True)
    if overrides:
        scenario = scenario_from({**scenario.config(), **overrides})
    if why := explain_missing_page(scenario):
        raise ConfigError(why)
    name = "" if isinstance(source, AbstractScenario) else config_files.get_shipped_config_name(source)
    return make_opening_view(scenario, named(scenario, name))


def make_scenario_page_factory(
    scenario: AbstractScenario, view: View | None = None, name: str = ""
) -> Callable[[], ExplorerPage]:
    """Return a function that makes a page of a named scenario, or shows the view in the page's address."""
    return lambda: ExplorerPage(scenario, view=view, query=_get_query(), name=name)


def make_result_page_factory(folder: Path) -> Callable[[], ExplorerPage]:
    """Return a function that makes pages of stored results.

    The results are read now, so that an error is reported before a page is served.
    """
    results = load_results(folder)
    return lambda: ExplorerPage(stored=results, name=folder.resolve().name)


def _get_query() -> list[tuple[str, str]]:
    """Return the query of the address that opened the page."""
    arguments = pn.state.session_args or {}
    return [(name, value.decode(errors="replace")) for name, values in arguments.items() for value in values]


def _exempt_charts_from_theme(get_root: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the root of a page whose theme leaves the models of charts unchanged."""
    root = get_root(*args, **options)
    # no event: its callback would keep a page in memory that was closed early
    root.data._property_values["_custom_theme"] = ["Axis", "Grid", "Figure"]
    return root
