"""What a page of HTML contains and loads."""

from __future__ import annotations

from html.parser import HTMLParser

LOADING = {"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background"}


class Page(HTMLParser):
    """Elements, what they load, and the words of tables and of preformatted text."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.pres: list[str] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "pre":
            self.pres.append("")

    def handle_endtag(self, tag):
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data):
        if "script" in self.open or "style" in self.open:
            return
        self.words += data
        if {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data
        if "pre" in self.open:
            self.pres[-1] += data

    def loaded(self) -> list[str]:
        found = [value for _, attrs in self.elements for name, value in attrs.items() if name in LOADING]
        return [value for value in found if value and not value.startswith(("#", "data:"))]
