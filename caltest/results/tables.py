"""Tables of results as text, in the languages of documents; names of classes stay text in all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import repeat
from math import nan
from typing import Any

import numpy as np

from caltest.results.numbers import format_p, format_range, format_value, spread_of

#: The heads of columns that are not called after their attribute.
HEADS = {
    **{"shown_floor": "if calibrated", "null_mean": "if calibrated", "shown_p": "p", "pvalue": "p"},
    **{"bin_low": "from", "bin_high": "to", "shown_estimate": "estimate"},
    **{"at_least": "somewhere wrong by at least", "at_most": "nowhere by more than"},
    **{"crosses": "decreases somewhere"},
}
#: Columns of what was chosen, not measured.
SETTINGS = (
    *("level", "alpha", "tolerance", "margin", "limit", "power", "width", "bin_low", "bin_high"),
)
_MARKDOWN = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_[]|~$#"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " "}
)
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", "−": "$-$", "·": r"$\cdot$", "\n": " "}
)
_NUMBER = re.compile(r"[<+−-]?\s?\d|–?$")

#: Columns by their names, with one value a row.
Columns = Mapping[str, Iterable[object]]


def attributes(rows: Iterable[object], names: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return columns by their heads: attributes of records, of which those that are None have none.

    Fields and properties are asked for by name here and nowhere else.
    """
    listed = list(rows)
    return {
        head: [None if row is None else getattr(row, name) for row in listed]
        for head, name in names.items()
    }


def cell(name: str, value: object, spread: float = nan) -> str:
    """Return a value as a table shows it, by the name of its column and the spread of its row.

    Examples
    --------
    >>> cell("pvalue", 1e-5), cell("low", float("nan")), cell("slope_interval", (0.9, 1.25))
    ('1.0e-05', '–', '0.900 to 1.250')
    """
    if name.endswith("interval") and isinstance(value, tuple):
        return format_range(*value)
    if isinstance(value, (tuple, np.ndarray)):
        return " ".join(cell(name, v, spread) for v in value)
    if value is None or value != value:
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    if name in SETTINGS:
        return f"{value:.3g}"
    if name.endswith(("pvalue", "adjusted", "alike")):
        return format_p(float(value))
    sign = "+" if name == "deviation" and value > 0.0 else ""
    return sign + format_value(float(value), spread)


def _spreads(columns: Mapping[str, list[Any]]) -> Iterable[float]:
    """Return what decides the decimals of every row: its standard error, or its interval."""
    if "se" in columns:
        return map(float, columns["se"])
    if "interval" in columns:
        return [spread_of(*(value or (None, None))) for value in columns["interval"]]
    if {"low", "high"} <= set(columns):
        return [spread_of(*ends) for ends in zip(columns["low"], columns["high"], strict=True)]
    return repeat(nan)


def head(name: str) -> str:
    """Return what stands over a column; an attribute is called by its name, in words."""
    return HEADS.get(name, name.replace("_", " ") if name.isidentifier() else name)


def texts(
    columns: Columns, mark_up: Callable[[str], str]
) -> tuple[list[str], list[tuple[str, ...]], list[bool]]:
    """Return heads, rows of cells, and which columns hold numbers."""
    lists = {name: list(values) for name, values in columns.items()}
    cells = [list(map(cell, repeat(name), v, _spreads(lists))) for name, v in lists.items()]
    numeric = [all(map(_NUMBER.match, column)) for column in cells]
    rows = zip(*([mark_up(text) for text in column] for column in cells), strict=True)
    return [mark_up(head(name)) for name in columns], list(rows), numeric


def listed(facts: Mapping[str, str]) -> list[str]:
    """Return the lines of a list of facts for a terminal."""
    width = max(map(len, facts)) + 2
    return [f"  {name:<{width}}{text}" for name, text in facts.items()]


def aligned(columns: Columns) -> list[str]:
    """Return the lines of a table for a terminal."""
    heads, rows, numeric = texts(columns, str)
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    places = [f"{{:{'>' if n else '<'}{w}}}" for n, w in zip(numeric, widths, strict=True)]
    return [("  " + "  ".join(places).format(*cells)).rstrip() for cells in lines]


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return text.translate(_MARKDOWN)


def markdown(columns: Columns) -> str:
    """Return a table for GitHub and other readers of Markdown."""
    heads, rows, numeric = texts(columns, markdown_text)
    rule = ["--:" if number else "---" for number in numeric]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def latex_text(text: str) -> str:
    """Return text that LaTeX shows as it is."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text).translate(_LATEX)


def latex(columns: Columns) -> str:
    """Return a ``tabular`` with the rules of the package booktabs."""
    heads, rows, numeric = texts(columns, latex_text)
    begin = rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}"
    lines = [rf"  {' & '.join(cells)} \\" for cells in (heads, *rows)]
    rules = [begin, r"  \toprule", lines[0], r"  \midrule", *lines[1:], r"  \bottomrule"]
    return "\n".join([*rules, r"\end{tabular}"])


def html(columns: Columns) -> str:
    """Return a table for notebooks."""
    heads, rows, numeric = texts(columns, escape)
    sides = [f'style="text-align:{"right" if number else "left"}"' for number in numeric]

    def line(kind: str, cells: Iterable[str]) -> str:
        elements = (f"<{kind} {s}>{c}</{kind}>" for s, c in zip(sides, cells, strict=True))
        return f"<tr>{''.join(elements)}</tr>"

    body = "\n".join(line("td", cells) for cells in rows)
    return f"<table>\n<thead>{line('th', heads)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
