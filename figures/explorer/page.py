"""The page: controls in one row, charts below them, and everything else in a drawer."""

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
INLINE = 460  # pixels: height of the charts in a notebook
CHOSEN = "(as chosen)"
WHITE = "rgba(255, 255, 255, 0.85)"
HEADER = {  # of menus on the coloured bar
    "& .MuiOutlinedInput-root": {"color": "white !important"},
    "& .MuiOutlinedInput-notchedOutline": {"borderColor": f"{WHITE} !important"},
    "& .MuiSvgIcon-root": {"color": WHITE},
}
NOTICE = {"py": "0", "& .MuiAlert-icon, & .MuiAlert-message": {"py": "4px"}, "& p": {"m": "0"}}  # one line
BAR = "48px"  # of the strip: two lines of words, so that charts keep their place when the second comes
PROGRESS = {"opacity": "0.85", "max-width": "17em", "text-align": "right", "line-height": "1.3"}  # of two lines
NARROW = "@media (max-width: 600px) { :host { max-width: 7.5rem !important; min-width: 0 !important } }"  # of menus
WIDE = "@media (max-width: 600px) { :host { display: none } }"  # of what a phone has no room for
UNTITLED = {"@media (max-width: 600px)": {"& .title": {"display": "none"}}}  # a phone has no room for it
FILLING = {"flex": "1 1 0", "min-height": "0", "overflow": "hidden auto"}  # all that is left of the window
ROW = """
:host { flex: none; padding-top: 2px }
div[id^="flexbox"] { align-items: flex-end !important }
@media (max-width: 600px) { div[id^="flexbox"] { flex-wrap: nowrap !important; overflow: auto hidden } }
"""


class Page:
    """The page of one visitor: a scenario with sliders, or stored results; in a notebook without a frame.

    `query` is that of the address which the page was opened with (`figures.explorer.link`).
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
        self.yaml = pn.widgets.TextAreaInput(visible=False)  # the text that is copied
        self.link = pn.widgets.TextAreaInput(visible=False)  # the query of the address
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
        self.sent = False  # whether the browser knows the controls of the source
        self.whole: Any = None
        self.watched: list[Any] = []
        if stored is not None:
            self._use(Stored(stored, self._shown))
        else:
            self._live(scenario, view, query)

    def view(self) -> Any:
        """Return the page as Panel serves it."""
        self.link.jscallback(value=ADDRESS)
        # no busy indicator: it would redraw the whole page at the beginning and the end of every step of a drag
        self.whole = pmui.Page(
            title="statmech",
            header=self.menus,
            sidebar=self._drawer(),
            main=[self._middle()],
            contextbar=[self.equations],
            contextbar_width=380,
            contextbar_open=False,
            contextbar_variant="auto",  # beside the charts, or over them on a phone
            sidebar_width=340,
            sidebar_open=False,
            sidebar_variant="temporary",
            busy_indicator=None,
            sx=UNTITLED,
        )
        self.whole.get_root = partial(_with_own_look, self.whole.get_root)
        self.charts.dark = self.whole.dark_theme
        self.watched = [self.whole.param.watch(lambda event: self.charts.darken(event.new), "dark_theme")]
        with edit_readonly(self.whole):  # else Panel walks through all models of the page twice a step: 20 ms
            self.whole.busy = False
        return self.whole

    def inline_view(self) -> Any:
        """Return the page as a part of a notebook."""
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
        hidden = [self.yaml, self.link, self.keys]  # not in the drawer, which is not there before it is opened
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
        """Stop the simulation of this page, and release all that it showed.

        Panel's state keeps the frame of every page (it watches whether the server is busy), and nested parts keep their
        models, and with them the whole document: 2.4 MB per page.
        """
        self.source.close()
        if self.whole is not None:
            for part in self.whole.select():
                part._models, part._documents, part._model_parents = {}, {}, {}  # the last since Panel 1.10
            for watcher in self.watched:  # the frame would keep the page
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
        elif cut := [name for name in cut if name not in self.source.controls]:  # which have a menu
            self._say(
                "info", f"The config has more values than the page shows: {'; '.join(map(self.source.described, cut))}"
            )

    def _menus(self, choice: str) -> None:
        titles = {kinds()[name].TITLE: name for name in settings.pages()}
        presets = {title: (name, view) for name in titles.values() for title, view in views(name).items()}
        look: dict[str, Any] = {
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
        self.kind = pmui.Select(label="scenario", options=titles, value=choice, **look, max_width=300)
        self.preset = pmui.Select(label="preset", options=[CHOSEN, *presets], value=CHOSEN, **look, max_width=310)
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
        """Begin or end lecture mode, in which arrows move a slider and turn to the next chart."""
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
        """Show another scenario, or another view of the same; of a config with the functions of time in its menus."""
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
        """Show the present results of the source, in one message to the browser.

        The first results of a source wait for its controls to be sent: a message that overtakes them would name models
        that the browser does not know.
        """
        at_once = pn.io.unlocked() if self.sent else contextlib.nullcontext()
        self.sent = True
        with at_once:
            self.charts.show(self.source.picture)
            for button in self.downloads[:2]:  # a picture needs simulation and theory
                button.disabled = not self.source.results.complete

    def _linked(self) -> None:
        """State the settings in the address, so that it restores the page."""
        if isinstance(self.source, Live) and hasattr(self.source, "scenario"):
            self.link.value = link.written(replace(self.source.view, **self.charts.view))

    def _settled(self) -> None:
        """Show the config, its link, and the equations of the scenario, and fit the charts to their curves."""
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
        """Show a message, or the progress of the simulation; an empty message removes an error."""
        if severity == "progress":
            self.progress.object = html.escape(message)
            return
        if message:
            self.message.param.update(object=_literal(message), severity=severity, visible=True)
        elif self.message.severity == "error":  # it is corrected; what only informs stays
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
        """Return the figure of the results, as `statmech figure` draws it."""
        import matplotlib as mpl

        results = self.source.results
        choice = results.scenario.CHOICE
        picture = io.BytesIO()
        with mpl.rc_context(STYLE):
            figures.drawn(figures.named(results.figure, "", choice), results).figure.savefig(picture, format=suffix)
        picture.seek(0)
        return picture


def _literal(text: str) -> str:
    """Text without anything that Markdown or HTML would interpret.

    >>> _literal("eta: <b>")
    'eta&#58; &#60;b&#62;'
    """
    return "".join(
        character if character.isalnum() or character.isspace() else f"&#{ord(character)};" for character in text
    )


def _named(name: str) -> str:
    """Return a name for LaTeX's text mode, without characters that are special in LaTeX or HTML."""
    return "".join(character if character.isalnum() or character in " _-.,:+()" else "?" for character in name)


def _safe(equation: str) -> str:
    """Return an equation from which no HTML can follow."""
    return equation.replace("$$", "").replace("<", r"\lt ").replace(">", r"\gt ")


def views(choice: str) -> dict[str, View]:
    """Return the presets of a kind of scenario, by their titles."""
    return dict(settings.page_of(choice).presets)


def started(choice: str, view: View) -> View:
    """Return a view with the config that pages of this kind start with, where it has no other."""
    config = {**settings.page_of(choice).start, **view.config}
    return link.checked(replace(view, config={name: v for name, v in config.items() if v is not None}), choice)


def opened(scenario: AbstractScenario | None = None, view: View | None = None) -> tuple[str, View, list[str]]:
    """The kind of scenario that a page opens with, its view, and the keys of whose values it takes only the first."""
    if view is not None and view.config:
        return settings.named_in(view.config), view, []
    if scenario is not None:
        return settings.choice_of(scenario), *opening(scenario, view)
    choice = next(iter(settings.pages()))
    return choice, started(choice, settings.page_of(choice).view), []


def files_of(scenario: AbstractScenario | None) -> list[Any]:
    """Return the files that a scenario names, which its pages may name, too."""
    return [] if scenario is None else settings.files(scenario.config())


def prepare(scenario: AbstractScenario | None = None, view: View | None = None) -> None:
    """Solve the theory that a page opens with, while the browser starts. The page itself will show any error."""
    choice, view, _ = opened(scenario, view)
    with contextlib.suppress(Exception):  # a user's rule may raise anything
        x = view.x or settings.page_of(choice).along
        opened_scenario = scenario_from(settings.config_of(choice, view.config, x))
        if not page_theory.is_to_be_searched(opened_scenario):
            page_theory.both(opened_scenario, settings.key_along(choice, x))


def opening(scenario: AbstractScenario, view: View | None = None) -> tuple[View, list[str]]:
    """How a scenario opens: as its figure does or, of no such figure, along the key that it sweeps.

    Also the keys of whose values the page takes only the first.
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
        shown_variables = (
            default_view.show if page.curves else default_view.show[:1]
        )  # of several tasks, the order as well
        default_view = replace(
            default_view,
            show=(*shown_variables, *controls),
            log=(*settings.logarithmic(scenario, x), *_log_y(default_view)),
        )
    held_config, cut = settings.held_of(scenario, x)
    return replace(view or default_view, config=held_config, x=x), cut


def _log_y(view: View) -> tuple[str, ...]:
    return tuple(name for name in view.log if name == "y")


def named(scenario: AbstractScenario, name: str) -> View | None:
    """Return the view of a shipped config of this name, if it is that of a published figure that has one."""
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
    """Makes pages of a scenario with sliders, or of the view that their addresses state."""
    return lambda: Page(scenario, view=view, query=_query())


def of_result(folder: Path) -> Callable[[], Page]:
    """Makes pages of stored results. They are read now, so that an error is reported before anything is served."""
    results = load_results(folder)
    return lambda: Page(stored=results)


def _query() -> list[tuple[str, str]]:
    """Return the query of the address that the page was opened with."""
    arguments = pn.state.session_args or {}
    return [(name, value.decode(errors="replace")) for name, values in arguments.items() for value in values]


def _with_own_look(get_root: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """Return the root of a page whose theme leaves these models of charts as they are."""
    root = get_root(*args, **given)
    # without an event, whose callback would keep a page that is closed before it is shown
    root.data._property_values["_custom_theme"] = ["Axis", "Grid", "Figure"]
    return root
