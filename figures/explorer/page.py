"""The page: controls in one row, charts below, and everything else in a drawer."""

from __future__ import annotations

import contextlib
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui
from panel.util.parameters import edit_readonly

import figures
from figures import functions_of_time
from figures.explorer import curricula, link, page_theory, settings
from figures.explorer.background import sentence
from figures.explorer.charts import Charts
from figures.explorer.keys import ARROWS, STEPS, TURNS, Keys
from figures.explorer.live import Live
from figures.explorer.stored_results import Stored
from figures.labels import kind_label
from figures.style import STYLE
from statmech import config
from statmech.errors import ConfigError
from statmech.results import export
from statmech.results.results import Results, load_results
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.page import View
from statmech.scenarios.registry import kinds, scenario_from

NAMED = r"\begin{array}{l}\text{%s:}\\ %s\end{array}"
LOOK = {"overflow-x": "auto", "max-width": "100%", "font-size": "90%"}
EQUATION: dict[str, Any] = {"renderer": "mathjax", "styles": LOOK, "margin": (2, 4)}
COPY = "navigator.clipboard.writeText(text.value)"
COPY_LINK = "navigator.clipboard.writeText(location.origin + location.pathname + '?' + text.value)"
ADDRESS = "history.replaceState(null, '', '?' + cb_obj.value)"
INLINE = 460  # height of the charts in a notebook
CHOSEN = "(as chosen)"
WHITE = "rgba(255, 255, 255, 0.85)"
HEADER = {  # menus on the coloured bar
    "& .MuiOutlinedInput-root": {"color": "white !important"},
    "& .MuiOutlinedInput-notchedOutline": {"borderColor": f"{WHITE} !important"},
    "& .MuiSvgIcon-root": {"color": WHITE},
}
NOTICE = {
    "py": "0",
    "& .MuiAlert-icon, & .MuiAlert-message": {"py": "4px"},
    "& p": {"m": "0"},
}  # keeps a notice to one line
BAR = "48px"  # room for two lines of text, so that a second line does not move the charts
PROGRESS = {"opacity": "0.85", "max-width": "17em", "text-align": "right", "line-height": "1.3"}  # fits two lines
NARROW = "@media (max-width: 600px) { :host { max-width: 7.5rem !important; min-width: 0 !important } }"
WIDE = "@media (max-width: 600px) { :host { display: none } }"  # a phone has no room for it
UNTITLED = {"@media (max-width: 600px)": {"& .title": {"display": "none"}}}  # a phone has no room for it
FILLING = {"flex": "1 1 0", "min-height": "0", "overflow": "hidden auto"}  # fills the rest of the window
ROW = """
:host { flex: none; padding-top: 2px }
div[id^="flexbox"] { align-items: flex-end !important }
@media (max-width: 600px) { div[id^="flexbox"] { flex-wrap: nowrap !important; overflow: auto hidden } }
"""


class Page:
    """The page of one visitor, which shows a scenario with sliders or stored results.

    In a notebook the page has no frame. `query` is the query of the address that opened the page
    (`figures.explorer.link`).
    """

    def __init__(
        self,
        scenario: AbstractScenario | None = None,
        stored: Results | None = None,
        view: View | None = None,
        query: Sequence[tuple[str, str]] = (),
        inline: bool = False,
    ):
        self.inline = inline
        self.charts = Charts(self._linked, INLINE if inline else 0)
        self.message = pmui.Alert(
            "", severity="info", visible=False, sizing_mode="stretch_width", margin=(2, 8), sx=NOTICE
        )
        self.progress = pn.pane.HTML("", styles=PROGRESS, margin=(4, 8))
        self.equations = pmui.Column(sizing_mode="stretch_width")
        self.text = pn.pane.HTML("", sizing_mode="stretch_width")
        self.yaml = pn.widgets.TextAreaInput(visible=False)  # text for the clipboard
        self.link = pn.widgets.TextAreaInput(visible=False)  # query of the address
        self.row = pn.FlexBox(sizing_mode="stretch_width", stylesheets=[ROW], margin=0)
        self.strip = pn.FlexBox(
            styles={"max-width": "100%", "width": "auto", "white-space": "nowrap", "align-items": "center"},
            stylesheets=[ROW],
            flex_wrap="nowrap",
            margin=0,
        )
        self.more = pmui.Column(sizing_mode="stretch_width")
        self.menus: list[Any] = []
        self.keys = Keys()
        self.downloads = self._downloads()
        self.source: Any = None
        self.sent = False  # True if the browser knows the controls of the source
        self.whole: Any = None
        self.watched: list[Any] = []
        if stored is not None:
            self._use(Stored(stored, self._shown))
        else:
            self._live(scenario, view, query)

    def view(self) -> Any:
        """Return the page for Panel to serve."""
        self.link.jscallback(value=ADDRESS)
        # no busy indicator, as it would redraw the whole page twice at every step of a drag
        self.whole = pmui.Page(
            title="statmech",
            header=self.menus,
            sidebar=self._drawer(),
            main=[self._middle()],
            contextbar=[self.equations],
            contextbar_width=380,
            contextbar_open=False,
            contextbar_variant="auto",  # next to the charts, or on top on a phone
            sidebar_width=340,
            sidebar_open=False,
            sidebar_variant="temporary",
            busy_indicator=None,
            sx=UNTITLED,
        )
        self.whole.get_root = partial(_with_own_look, self.whole.get_root)
        self.charts.dark = self.whole.dark_theme
        self.watched = [self.whole.param.watch(lambda event: self.charts.darken(event.new), "dark_theme")]
        with edit_readonly(self.whole):  # saves 20 ms per step: Panel would walk through all models of the page twice
            self.whole.busy = False
        return self.whole

    def inline_view(self) -> Any:
        """Return the page for a notebook cell."""
        more = pmui.Accordion(("More", pmui.Column(*self._drawer())), sizing_mode="stretch_width")
        self.whole = pn.Column(
            pn.FlexBox(*self.menus), self._middle(), more, sizing_mode="stretch_width", min_width=600
        )
        return self.whole

    def _middle(self) -> Any:
        bar = pn.FlexBox(
            self.strip,
            self.charts.legend,
            self.progress,
            sizing_mode="stretch_width",
            align_items="center",
            margin=0,
            styles={"min-height": BAR},
        )
        hidden = [self.yaml, self.link, self.keys]  # outside the drawer, which does not exist before it is opened
        size: dict[str, Any] = {"sizing_mode": "stretch_width"} if self.inline else {"sizing_mode": "stretch_both"}
        return pn.Column(
            self.row,
            bar,
            self.message,
            self.charts.area,
            *hidden,
            margin=0,
            **size,
            styles={} if self.inline else FILLING,
        )

    def _drawer(self) -> list[Any]:
        copy_link = self._copy("Copy link", self.link, COPY_LINK)
        links = [] if self.inline or isinstance(self.source, Stored) else [copy_link]
        return [
            *self.charts.switches,
            self.more,
            *([self._card("Equations", self.equations)] if self.inline else []),
            self._card("Config", self._copy("Copy config", self.yaml, COPY), *links, self.text),
            self._card("Download", pmui.FlexBox(*self.downloads, gap="4px")),
        ]

    def close(self) -> None:
        """Stop the simulation of this page and release its memory.

        Panel's state keeps the frame of every page, as the frame watches whether the server is busy. Nested parts keep
        their models, and thus the whole document: 2.4 MB per page.
        """
        self.source.close()
        if self.whole is not None:
            for part in self.whole.select():
                part._models, part._documents, part._model_parents = {}, {}, {}  # Panel 1.10 added the third
            for watcher in self.watched:  # as the frame would keep the page
                self.whole.param.unwatch(watcher)
            self.whole.param.update(main=[], sidebar=[], header=[], **({} if self.inline else {"contextbar": []}))

    @staticmethod
    def _card(title: str, *parts: Any) -> Any:
        return pmui.Card(*parts, title=title, collapsible=True, sizing_mode="stretch_width", margin=(0, 8, 12, 0))

    def _live(self, scenario: AbstractScenario | None, view: View | None, query: Sequence[tuple[str, str]]) -> None:
        problem = ""
        try:
            view = link.read(query, files_of(scenario)) or view
        except ConfigError as failure:
            problem = sentence(failure)
        choice, view, cut = opened(scenario, view)
        self._menus(choice)
        is_same_kind = scenario is not None and settings.choice_of(scenario) == choice
        self._open(choice, view, curricula.offered(scenario) if is_same_kind else {})
        if problem:
            self._say("warning", problem)
        elif cut := [name for name in cut if name not in self.source.controls]:  # these have a menu
            self._say(
                "info", f"The config has more values than the page shows: {'; '.join(map(self.source.described, cut))}"
            )

    def _menus(self, choice: str) -> None:
        titles = {kinds()[name].TITLE: name for name in settings.pages()}
        presets = {title: (name, view) for name in titles.values() for title, view in views(name).items()}
        menu_options: dict[str, Any] = {
            "size": "small",
            "margin": (6, 6),
            "sizing_mode": "stretch_width",
            "sx": {} if self.inline else HEADER,
            "stylesheets": [NARROW] if self.inline else [NARROW, f"label {{ color: {WHITE} !important }}"],
        }
        self.lecture = pmui.Switch(
            label="lecture", margin=(6, 6), sx={} if self.inline else {"color": "white"}, stylesheets=[WIDE]
        )
        self.lecture.param.watch(lambda event: self._present(event.new), "value")
        self.keys.param.watch(lambda event: self._press(event.new), "pressed")
        self.kind = pmui.Select(label="scenario", options=titles, value=choice, **menu_options, max_width=300)
        self.preset = pmui.Select(
            label="preset", options=[CHOSEN, *presets], value=CHOSEN, **menu_options, max_width=310
        )
        self.menus = [self.kind, self.preset, self.lecture]

        def turn(event: Any) -> None:
            if event.new != self.source.choice:
                self._open(event.new, started(event.new, settings.page_of(event.new).view))

        def take(event: Any) -> None:
            if event.new in presets:
                name, view = presets[event.new]
                self._open(name, started(name, view))
                self.kind.value = name
                self.preset.value = CHOSEN

        self.kind.param.watch(turn, "value")
        self.preset.param.watch(take, "value")

    def _present(self, on: bool) -> None:
        """Start or stop lecture mode.

        Its arrow keys move a slider and change the chart.
        """
        self.charts.present(on)
        self.row.visible = self.strip.visible = not on
        self.message.visible = self.message.visible and not (on and self.message.severity == "info")
        self.keys.listening = on
        self.progress.styles = {**PROGRESS, "max-width": "none"} if on else PROGRESS
        self.progress.object = ARROWS if on else ""

    def _press(self, pressed: str) -> None:
        key = pressed.partition(" ")[0]
        if key == "Escape":
            self.lecture.value = False
        elif key in TURNS:
            self.charts.turn(TURNS[key])
        elif isinstance(self.source, Live) and key in STEPS:
            self._say("progress", self.source.step(STEPS[key]))

    def _open(self, choice: str, view: View, functions: dict[str, list[Any]] | None = None) -> None:
        """Open a scenario with a view.

        The menus offer the functions of time of its config.
        """
        self.message.visible = False
        self.charts.use(view)
        live = Live(view, choice, self._shown, self._settled, self._say, lambda: self.charts.runs.value, functions)
        self._use(live)
        if self.inline:
            live.clock.later(1, live.update)
        else:
            pn.state.onload(live.update)

    def _use(self, source: Live | Stored) -> None:
        if self.source is not None:
            self.source.close()
        self.source, self.sent = source, False
        self.row.objects = source.row
        self.strip.objects = [*self.charts.bar, *(source.strip if isinstance(source, Live) else [])]
        self.more.objects = source.more
        if isinstance(source, Stored):
            source.update()
            self._settled()

    def _shown(self) -> None:
        """Show the current results of the source, in one message to the browser.

        The first results of a source are sent after its controls. An earlier message would name models that the browser
        does not know.
        """
        at_once = pn.io.unlocked() if self.sent else contextlib.nullcontext()
        self.sent = True
        with at_once:
            self.charts.show(self.source.picture)
            for button in self.downloads[:2]:  # a picture needs simulation and theory
                button.disabled = not self.source.results.complete

    def _linked(self) -> None:
        """Write the settings to the address, which then restores the page."""
        if isinstance(self.source, Live) and hasattr(self.source, "scenario"):
            self.link.value = link.written(replace(self.source.view, **self.charts.view))

    def _settled(self) -> None:
        """Show the config, its link and the equations, and fit the charts to their curves."""
        self.charts.fit()
        self._linked()
        scenario = self.source.scenario
        self.yaml.value = config.written(scenario)
        self.text.object = f"<pre style='white-space:pre-wrap'>{html.escape(self.yaml.value)}</pre>"
        equations_by_name = {name: scenario.equation_of(name) for name in scenario.chosen()}
        kinds = scenario.classes()
        named_equations = (
            NAMED % (_named(kind_label(kinds, name)), equation)
            for name, equation in equations_by_name.items()
            if equation
        )
        equations = [_safe(equation) for equation in (*scenario.stated_equations, *named_equations)]
        if equations != [pane.name for pane in self.equations]:
            self.equations.objects = [
                pn.pane.LaTeX(f"$${equation}$$", name=equation, **EQUATION) for equation in equations
            ]

    def _say(self, severity: str, message: str) -> None:
        """Show a message, or the progress of the simulation.

        An empty message removes an error.
        """
        if severity == "progress":
            self.progress.object = html.escape(message)
            return
        if message:
            self.message.param.update(object=_literal(message), severity=severity, visible=True)
        elif self.message.severity == "error":  # the error is corrected, while other messages stay
            self.message.visible = False

    @staticmethod
    def _copy(label: str, text: Any, code: str) -> Any:
        button = pmui.Button(label=label, variant="outlined", size="small")
        button.js_on_click(args={"text": text}, code=code)
        return button

    def _downloads(self) -> list[Any]:
        files: dict[str, Callable[[], Any]] = {
            "png": partial(self._picture, "png"),
            "svg": partial(self._picture, "svg"),
            "csv": lambda: io.BytesIO(export.csv(page_theory.with_all_digits(self.source.results))),
            "nc": lambda: io.BytesIO(export.netcdf(page_theory.with_all_digits(self.source.results))),
            "yaml": lambda: io.StringIO(config.written(self.source.scenario)),
        }
        return [
            pmui.FileDownload(
                callback=make, filename=f"statmech.{suffix}", label=f"Download {suffix}", variant="outlined"
            )
            for suffix, make in files.items()
        ]

    def _picture(self, suffix: str) -> io.BytesIO:
        """Draw the figure of the results like `statmech figure`, and return the file."""
        import matplotlib as mpl

        results = self.source.results
        choice = results.scenario.CHOICE
        picture = io.BytesIO()
        with mpl.rc_context(STYLE):
            figures.drawn(figures.named(results.figure, "", choice), results).figure.savefig(picture, format=suffix)
        picture.seek(0)
        return picture


def _literal(text: str) -> str:
    """Escape all characters that Markdown or HTML would interpret.

    >>> _literal("eta: <b>")
    'eta&#58; &#60;b&#62;'
    """
    return "".join(
        character if character.isalnum() or character.isspace() else f"&#{ord(character)};" for character in text
    )


def _named(name: str) -> str:
    """Replace the characters of a name that are special in LaTeX or HTML."""
    return "".join(character if character.isalnum() or character in " _-.,:+()" else "?" for character in name)


def _safe(equation: str) -> str:
    """Return a LaTeX equation without characters that start HTML."""
    return equation.replace("$$", "").replace("<", r"\lt ").replace(">", r"\gt ")


def views(choice: str) -> dict[str, View]:
    """Return the presets of a kind of scenario by title."""
    return dict(settings.page_of(choice).presets)


def started(choice: str, view: View) -> View:
    """Complete the config of a view with the start values of pages of this kind."""
    config = {**settings.page_of(choice).start, **view.config}
    return link.checked(replace(view, config={name: v for name, v in config.items() if v is not None}), choice)


def opened(scenario: AbstractScenario | None = None, view: View | None = None) -> tuple[str, View, list[str]]:
    """Return the kind of scenario of an opened page, its view, and the keys reduced to one value."""
    if view is not None and view.config:
        return settings.named_in(view.config), view, []
    if scenario is not None:
        return settings.choice_of(scenario), *opening(scenario, view)
    choice = next(iter(settings.pages()))
    return choice, started(choice, settings.page_of(choice).view), []


def files_of(scenario: AbstractScenario | None) -> list[Any]:
    """Return the files that a scenario names, which its pages may also name."""
    return [] if scenario is None else settings.files(scenario.config())


def prepare(scenario: AbstractScenario | None = None, view: View | None = None) -> None:
    """Solve the theory of an opening page while the browser starts.

    The page itself shows any error.
    """
    choice, view, _ = opened(scenario, view)
    with contextlib.suppress(Exception):  # a user's rule may raise any exception
        x = view.x or settings.page_of(choice).along
        opened_scenario = scenario_from(settings.config_of(choice, view.config, x))
        if not page_theory.is_to_be_searched(opened_scenario):
            page_theory.both(opened_scenario, settings.key_along(choice, x))


def opening(scenario: AbstractScenario, view: View | None = None) -> tuple[View, list[str]]:
    """Return the view that a scenario opens with, and the keys reduced to one value.

    The view is the view of its figure, if that has one. Otherwise the swept key is on the x axis.
    """
    page = settings.page_of(settings.choice_of(scenario))
    page_views = [page.view, *page.presets.values()]
    view = view or next((page_view for page_view in page_views if scenario.figure in page_view.figures), None)
    x = view.x if view is not None and view.x else settings.x_of(scenario)
    default_view = page.view if x == (page.view.x or page.along) else View(log=settings.logarithmic(scenario, x))
    if getattr(scenario, "K", None) == 1:
        variables = scenario.variables
        default_view = replace(
            default_view, show=tuple(dict.fromkeys(variables[name].alone or name for name in default_view.show))
        )
    if controls := functions_of_time.variables(scenario):
        # with several tasks the page also shows their order
        shown_variables = default_view.show if page.curves else default_view.show[:1]
        default_view = replace(
            default_view,
            show=(*shown_variables, *controls),
            log=(*settings.logarithmic(scenario, x), *_log_y(default_view)),
        )
    page_config, cut = settings.held_of(scenario, x)
    return replace(view or default_view, config=page_config, x=x), cut


def _log_y(view: View) -> tuple[str, ...]:
    return tuple(name for name in view.log if name == "y")


def named(scenario: AbstractScenario, name: str) -> View | None:
    """Return the view of a published figure by the name of its shipped config, or None."""
    page = settings.page_of(settings.choice_of(scenario))
    return next(
        (
            replace(page_view, config={})
            for page_view in (page.view, *page.presets.values())
            if name in page_view.figures
        ),
        None,
    )


def of_config(scenario: AbstractScenario, view: View | None = None) -> Callable[[], Page]:
    """Return a function that makes pages of a scenario, or of the view in their address."""
    return lambda: Page(scenario, view=view, query=_query())


def of_result(folder: Path) -> Callable[[], Page]:
    """Return a function that makes pages of stored results.

    The results are read now, so that an error is reported before a page is served.
    """
    results = load_results(folder)
    return lambda: Page(stored=results)


def _query() -> list[tuple[str, str]]:
    """Return the query of the address that opened the page."""
    arguments = pn.state.session_args or {}
    return [(name, value.decode(errors="replace")) for name, values in arguments.items() for value in values]


def _with_own_look(get_root: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """Return the root of a page with a theme that does not change the models of charts."""
    root = get_root(*args, **given)
    # set without an event: its callback would keep a page in memory that is closed early
    root.data._property_values["_custom_theme"] = ["Axis", "Grid", "Figure"]
    return root
