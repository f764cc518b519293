r"""Code on the pages of the site: lines that fit their box, and names that break between their words.

Files keep lines of 120 letters, which a box beside the contents cuts off. Lines of configs are wrapped where
YAML reads a line break as a space, so that the shown config is the same config.
"""

from __future__ import annotations

import re
from textwrap import wrap

from docutils import nodes
from sphinx.transforms import SphinxTransform

WIDTH = 100  # letters of a box at 1,300 pixels
MIN_PATH_LENGTH = 36  # letters of a name that may end a line of text early
MIN_NAME_LENGTH = 14  # letters of one that may break in a column
MIN_COMMENT_WIDTH = 36  # a comment with less room stands above its line
COMMENT = re.compile(r"(\s+)# (?=[^'\"]*$|[^'\"]*'[^'\"]*$|.*[^\]}'\"]$)")
FOLDED = re.compile(r"(\s*)(?:- )?[\w ]+: >-?$")
MODULES = re.compile(r"(?<=[./(])(?=\w)")
BREAK = re.compile(r"(?<=[a-z0-9)])(?=[A-Z][a-z])|(?<=[./_=,])(?<!\d\.)(?=\w)(?!py\b|yaml\b)|(?<=\w-)(?=\w)")


def fit_yaml(text: str, width: int = WIDTH) -> str:
    """Wrap the long lines of a config: comments, folded text, lists and titles.

    >>> print(fit_yaml("N: 256  # features of one sum, each of variance one and mean zero", 48))
    N: 256  # features of one sum, each of variance
            # one and mean zero
    >>> print(fit_yaml("note: one two three four", 16))
    note: one two
      three four
    """
    lines: list[str] = []
    rest = text.splitlines()
    while rest:
        line = rest.pop(0)
        indent = _indent(line)
        if line.lstrip().startswith("# "):
            while rest and rest[0].startswith(indent + "# "):
                line += "\n" + rest.pop(0)
            lines += _fit_block(line.splitlines(), indent + "# ", width)
            continue
        lines += _fit_line(line, width)
        if FOLDED.fullmatch(line):
            block = []
            while rest and len(_indent(rest[0])) > len(indent):
                block.append(rest.pop(0))
            lines += _fit_block(block, _indent(block[0]), width)
    return "\n".join(lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _fit_block(block: list[str], start: str, width: int) -> list[str]:
    """Wrap folded text or a comment of several lines again, if a line of it is too long."""
    if max(map(len, block)) <= width:
        return block
    return _wrap(" ".join(line.removeprefix(start) for line in block), width, start, start)


def _fit_line(line: str, width: int) -> list[str]:
    """The lines of one long line; a comment stays beside its value."""
    indent = _indent(line)
    if len(line) <= width:
        return [line]
    if hit := COMMENT.search(line):
        comment = line[hit.end() :]
        if width - hit.end() < MIN_COMMENT_WIDTH:
            return [*_wrap(comment, width, indent + "# ", indent + "# "), *_fit_line(line[: hit.start()], width)]
        return _wrap(comment, width, line[: hit.end()], " " * (hit.end() - 2) + "# ")
    if re.search(r"(?:^|[ \[{])[\[{]", line):  # a list or section: a key stays with its value
        line = re.sub(r"(?<=[^,]) ", "\0", line.lstrip())
    later = indent + (4 if line.lstrip().startswith("-") else 2) * " "
    return [part.replace("\0", " ") for part in _wrap(line.lstrip(), width, indent, later)]


def _wrap(text: str, width: int, first: str, later: str) -> list[str]:
    return wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def _break_name(name: nodes.literal) -> list[str]:
    """The parts of a name: in narrow columns all words of it, in lines of text the modules of a long path."""
    text, node = name.astext(), name.parent
    while node is not None and not isinstance(node, nodes.entry):
        node = node.parent
    if node is not None:
        return BREAK.split(text) if len(text) > MIN_NAME_LENGTH else [text]
    return MODULES.split(text) if len(text) > MIN_PATH_LENGTH else [text]


class CodeBoxes(SphinxTransform):
    """Fits boxes of code, and lets a browser break a long name after a point or an underscore."""

    default_priority = 800

    def apply(self) -> None:
        for box in self.document.findall(nodes.literal_block):
            text = box.astext().rstrip("\n")
            if box.get("language") == "yaml":
                text = fit_yaml(text)
            if box.rawsource == box.astext() != text:
                box.rawsource = text
                box.children = []
                box += nodes.Text(text)
        for name in list(self.document.findall(nodes.literal)):
            words = _break_name(name)
            if re.fullmatch(r"--?\w[\w-]*", name.astext()):
                name["classes"].append("option")
            if len(words) > 1 and all(isinstance(child, nodes.Text) for child in name.children):
                name.children = []
                for word in words[:-1]:
                    name += [nodes.Text(word), nodes.raw("", "<wbr>", format="html")]
                name += nodes.Text(words[-1])
