"""The page: sliders at the side, charts in the middle, equations, config and downloads beside them."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import panel as pn
import panel_material_ui as pmui

import figures
from figures.explorer import settings
from figures.explorer.charts import Charts
from figures.explorer.live import Live
from figures.explorer.stored_results import Stored
from figures.style import STYLE
from statmech import config
from statmech.results import export
from statmech.results.results import Results, load_results
from statmech.scenarios.axes import points
from statmech.scenarios.registry import SCENARIOS

NAMED = r"\begin{array}{l}\text{%s:}\\ %s\end{array}"
LOOK = {"overflow-x": "auto", "max-width": "100%", "font-size": "90%"}
EQUATION: dict[str, Any] = {"renderer": "mathjax", "styles": LOOK, "margin": (2, 4)}
COPY = "navigator.clipboard.writeText(yaml.value)"


class Page:
    """The page of one visitor: a scenario with sliders, or stored results."""

    def __init__(self, scenario: Any = None, stored: Results | None = None):
        self.charts = Charts()
        self.message = pmui.Alert("", severity="info", visible=False, sizing_mode="stretch_width")
        self.progress = pn.pane.HTML("", sizing_mode="stretch_width", styles={"opacity": "0.75"})
        self.equations = pmui.Column(sizing_mode="stretch_width")
        self.text = pn.pane.HTML("", sizing_mode="stretch_width")
        self.yaml = pn.widgets.TextAreaInput(visible=False)  # the text that is copied
        self.side = pmui.Column(sizing_mode="stretch_width")
        self.downloads = self._downloads()
        self.source: Any = None
        self.whole: Any = None
        if stored is not None:
            self._use(Stored(stored, self._shown))
        else:
            self._live(scenario)

    def view(self) -> Any:
        """The page as Panel serves it."""
        beside = pn.Column(
            self._card("Equations", self.equations),
            self._card("Config", self._copy(), self.text, self.yaml),
            self._card("Download", pmui.FlexBox(*self.downloads, gap="4px")),
            styles={"flex": "1 1 300px", "min-width": "300px"},
        )
        middle = pn.Column(
            self.message, self.charts.view, self.progress, styles={"flex": "3 1 480px", "min-width": "310px"}
        )
        main = pn.FlexBox(middle, beside, sizing_mode="stretch_width", gap="16px")
        # no busy indicator: it would redraw the whole page at the beginning and the end of every step of a drag
        self.whole = pmui.Page(
            title="statmech", sidebar=[self.side], main=[main], sidebar_width=320, busy_indicator=None
        )
        return self.whole

    def close(self) -> None:
        """Stop the simulation of this page, and release all that it showed.

        Panel's state keeps the frame of every page (it watches whether the server is busy), and nested parts keep their
        models, and with them the whole document: 2.4 MB per page.
        """
        self.source.close()
        if self.whole is not None:
            for part in self.whole.select():
                part._models, part._documents = {}, {}
            self.whole.param.update(main=[], sidebar=[])

    @staticmethod
    def _card(title: str, *parts: Any) -> Any:
        return pmui.Card(*parts, title=title, collapsible=True, sizing_mode="stretch_width", margin=(0, 8, 12, 0))

    def _live(self, scenario: Any) -> None:
        choices = {SCENARIOS[choice].TITLE: choice for choice in settings.pages()}
        given, cut = settings.held_of(scenario) if scenario is not None else (None, [])
        begin = scenario.CHOICE if scenario is not None else next(iter(settings.pages()))
        select = pmui.Select(label="scenario", options=choices, value=begin, sizing_mode="stretch_width")
        below = pmui.Column(sizing_mode="stretch_width")

        def use(choice: str, given: dict[str, Any]) -> None:
            live = Live(given, choice, self._shown, self._settled, self._say)
            below.objects = [live.view]
            self._use(live)
            pn.state.onload(live.update)

        select.param.watch(lambda event: use(event.new, dict(settings.page_of(event.new).start)), "value")
        self.side.objects = [select, below]
        use(begin, given or dict(settings.page_of(begin).start))
        if cut:
            self._say(
                "info", f"{', '.join(cut)}: only the first value; stored results of a sweep open with all of them"
            )

    def _use(self, source: Live | Stored) -> None:
        if self.source is not None:
            self.source.close()
        self.source = source
        if isinstance(source, Stored):
            self.side.objects = [source.view]
            source.update()
            self._settled()

    def _shown(self) -> None:
        """Show the present results of the source."""
        self.charts.show(self.source.slice, self.source.layout)
        for button in self.downloads[:2]:  # a picture needs simulation and theory
            button.disabled = not self.source.results.complete

    def _settled(self) -> None:
        """Show the config and the equations of the scenario."""
        scenario = self.source.scenario
        self.yaml.value = config.written(scenario)
        self.text.object = f"<pre style='white-space:pre-wrap'>{html.escape(self.yaml.value)}</pre>"
        stated = {name: scenario.equation_of(name) for name in points(getattr(scenario, scenario.CHOICE))}
        named = (NAMED % (_named(name), it) for name, it in stated.items() if it)
        equations = [_safe(it) for it in (*scenario.equations, *named)]
        if equations != [pane.name for pane in self.equations]:
            self.equations.objects = [pn.pane.LaTeX(f"$${it}$$", name=it, **EQUATION) for it in equations]

    def _say(self, severity: str, message: str) -> None:
        """Show a message, or the progress of the simulation; an empty message removes an error."""
        if severity == "progress":
            self.progress.object = html.escape(message)
            return
        if message:
            self.message.param.update(object=_literal(message), severity=severity, visible=True)
        elif self.message.severity == "error":  # it is corrected; what only informs stays
            self.message.visible = False

    def _copy(self) -> Any:
        button = pmui.Button(label="Copy config", variant="outlined")
        button.js_on_click(args={"yaml": self.yaml}, code=COPY)
        return button

    def _downloads(self) -> list[Any]:
        files: dict[str, Callable[[], Any]] = {
            "png": partial(self._picture, "png"),
            "svg": partial(self._picture, "svg"),
            "csv": lambda: io.BytesIO(export.csv(self.source.results)),
            "nc": lambda: io.BytesIO(export.netcdf(self.source.results)),
            "yaml": lambda: io.StringIO(config.written(self.source.scenario)),
        }
        return [
            pmui.FileDownload(
                callback=make, filename=f"statmech.{suffix}", label=f"Download {suffix}", variant="outlined"
            )
            for suffix, make in files.items()
        ]

    def _picture(self, suffix: str) -> io.BytesIO:
        """The figure of the results, as `statmech figure` draws it."""
        import matplotlib as mpl

        results = self.source.results
        choice = results.scenario.CHOICE
        picture = io.BytesIO()
        with mpl.rc_context(STYLE):
            name = figures.fitting(figures.named(results.figure, "", choice), results)
            figures.draw(name, results).savefig(picture, format=suffix)
        picture.seek(0)
        return picture


def _literal(text: str) -> str:
    """Text without anything that Markdown or HTML would interpret.

    >>> _literal("eta: <b>")
    'eta&#58; &#60;b&#62;'
    """
    return "".join(it if it.isalnum() or it.isspace() else f"&#{ord(it)};" for it in text)


def _named(name: str) -> str:
    """A name for LaTeX's text mode, without characters that are special in LaTeX or HTML."""
    return "".join(it if it.isalnum() or it in " _-.,:+" else "?" for it in name)


def _safe(equation: str) -> str:
    """An equation from which no HTML can follow."""
    return equation.replace("$$", "").replace("<", r"\lt ").replace(">", r"\gt ")


def of_config(scenario: Any) -> Callable[[], Page]:
    """Makes pages of a scenario with sliders."""
    return lambda: Page(scenario)


def of_result(folder: Path) -> Callable[[], Page]:
    """Makes pages of stored results. They are read now, so that an error is reported before anything is served."""
    results = load_results(folder)
    return lambda: Page(stored=results)
