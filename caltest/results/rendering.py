"""Number formats; tables as text, Markdown, LaTeX, HTML and data frames; the card of a notebook.

:func:`text`, :func:`document_markdown` and :func:`document_latex` write a whole result from its
:class:`Content`; :func:`format_value` and :func:`format_p` decide digits everywhere.
:func:`to_frame` makes a data frame: in Polars if it is imported, or pandas is missing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from datetime import datetime
from html import escape
from importlib.util import find_spec
from itertools import repeat, zip_longest
from math import floor, inf, isfinite, log10, nan
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas
    import polars


#: p-values below the first are printed as a bound, those below the second are not drawn.
SMALLEST_P, SMALLEST_SHOWN = 1e-3, 1e-12


#: More decimals than this become a power of ten.
MOST_DECIMALS = 7


def decimals(spread: float) -> int:
    """Return the number of decimals at which a positive number has two significant digits."""
    return max(0, 1 - floor(log10(float(f"{spread:.1e}"))))


def format_value(value: float, spread: float = nan) -> str:
    """Return a number as text, with as many decimals as show two significant digits of its spread.

    Without a spread (NaN or 0) it has four decimals, or two significant digits where that takes
    more. NaN is "–".

    Examples
    --------
    >>> format_value(0.0392, 0.0105), format_value(0.0392), format_value(-9.21e-4)
    ('0.039', '0.0392', '-0.00092')
    """
    if not isfinite(value):
        return "–" if value != value else "∞" if value > 0.0 else "-∞"
    has_spread = isfinite(spread) and spread > 1e-15
    if abs(value) < 1e-15:  # also for -0.0 and rounding errors
        return "0"
    digits = decimals(spread) if has_spread else max(4, decimals(abs(value)))
    if digits > MOST_DECIMALS or (not has_spread and abs(value) >= 1e6):
        return f"{value:.2g}" if has_spread else f"{value:.2e}"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def format_range(low: float, high: float, between: str = " to ") -> str:
    """Return "low to high", rounded by a quarter of their distance, about one standard error.

    ``between`` replaces " to ".
    """
    return between.join(format_value(end, spread_of(low, high)) for end in (low, high))


def spread_of(low: float | None, high: float | None) -> float:
    """Return a quarter of the length of an interval, about one standard error.

    NaN without an interval: if ``low`` or ``high`` is None, or the length is 0 or infinite.
    """
    length = nan if low is None or high is None else (high - low) / 4.0
    return length if 0.0 < length < inf else nan


def with_sd(mean: float, sd: float) -> str:
    """Return "mean ± sd" with two significant digits of the standard deviation."""
    return f"{format_value(mean, sd)} ± {format_value(sd, sd)}"


def in_sd(value: float, sd: float) -> str:
    """Return a value in units of the standard deviation ``sd``, cut at "beyond 1000 sd".

    Examples
    --------
    >>> in_sd(0.3, 0.1), in_sd(-1e6, 1.0), in_sd(0.3, 0.0)
    ('+3.0 sd', 'beyond -1000 sd', '–')
    """
    if sd == 0.0:
        return "–"
    z = round(value / sd, 1) + 0.0  # no negative zero
    sign = "+" if z else ""
    return f"{z:{sign}.1f} sd" if abs(z) < 1000.0 else f"beyond {'+' if z > 0.0 else '-'}1000 sd"


def in_percent(share: float) -> str:
    """Return a proportion in percent with two significant digits, without exponent."""
    return f"{float(f'{100.0 * share:.2g}'):g} %"


def percent(share: float, other: float) -> str:
    """Return a proportion in percent, with enough digits to tell it from ``other``.

    ``share`` and ``other`` are in [0, 1]. The number of decimals shows two significant digits of
    their difference.
    """
    gap = abs(share - other)
    digits = max(decimals(gap) - 2, 1) if gap > 1e-6 else 1
    return f"{100.0 * share:.{digits}f} %"


def format_p(p: float, alpha: float = nan, *, floor: bool = False) -> str:
    """Return a p-value as printed: "0.037", "0.0013", or "< 0.001".

    Further digits tell it from ``alpha``; smaller ones are printed for an ``alpha`` up to 0.001. At
    the ``floor`` of a simulation it is "≤ 0.0005".
    """
    two = np.format_float_positional(float(f"{p:.2g}"), trim="-")
    if floor:
        return f"≤ {two}"
    if p < SMALLEST_P and not alpha <= SMALLEST_P:
        return f"< {SMALLEST_P:g}"
    text = f"{p:.3f}" if p >= 0.01 else two if p >= 0.1 * SMALLEST_P else f"{p:.1e}"
    finer = (f"{p:.{digits}f}" for digits in range(4, 13))
    return text if float(text) != alpha else next((t for t in finer if float(t) != alpha), text)


def p_is(p: float | str, name: str = "p") -> str:
    """Return "p = 0.02", or "p ≤ 0.02" for a p-value that is printed as "≤ 0.02".

    ``name`` stands in the place of p, such as "adjusted p".
    """
    shown = p if isinstance(p, str) else format_p(p)
    return f"{name} {shown}" if shown.startswith(("<", "≤")) else f"{name} = {shown}"


# ------------------------------------------------------------------------------
# A result as a whole: its forms are made of the four things that it knows.


#: Columns by their names, with one value a row.
Columns = Mapping[str, Iterable[object]]


@dataclass(frozen=True)
class Content:
    """The title, tables, sentences and recipe of a result.

    Attributes
    ----------
    title : str
        The first line of its text; may be empty.
    tables : sequence of Columns
        Columns by name, each with one value a row.
    sentences : sequence of str
        The finding, and remarks on it.
    recipe : str
        One line that says how the numbers were made.
    """

    title: str
    tables: Sequence[Columns]
    sentences: Sequence[str]
    recipe: str


def text(
    title: str, lines: Sequence[str | Columns], sentences: Sequence[str], below: Sequence[str]
) -> str:
    """Return a result as terminal text: title, lines or tables, sentences, closing lines.

    ``lines`` are strings or tables, and ``below`` are the closing lines; one empty line separates
    blocks.
    """
    shown: list[str] = []
    for line in lines:
        shown += [line] if isinstance(line, str) else [*aligned(line), ""]
    words = [f"  {line}" for sentence in sentences for line in sentence.split("\n")]
    closing = [*words, *below]
    is_list = isinstance(lines[0], str)
    if shown[-1] == "" and (closing[0] == "" or not (is_list or words)):
        shown.pop()  # one empty line is enough
    return "\n".join([*[title] * bool(title), *shown, *closing])


def document_markdown(content: Content) -> str:
    """Return tables, sentences and recipe in Markdown.

    ``content`` is a result as title, tables, sentences and recipe, a line that says how it was
    computed.
    """
    sentences = map(markdown_text, (*content.sentences, content.recipe))
    return "\n\n".join([*map(markdown, content.tables), *sentences]) + "\n"


def document_latex(content: Content) -> str:
    """Return the tables in LaTeX, with the recipe as a comment.

    ``content`` is a result as title, tables, sentences and recipe, a line that says how it was
    computed.
    """
    recipe = " ".join(content.recipe.split())
    return "\n\n".join([f"% {recipe}", *map(latex, content.tables)]) + "\n"


# ------------------------------------------------------------------------------
# Tables of results as text, in the languages of documents; names of classes stay text in all.


#: The heads of columns that are not called after their attribute.
HEADS = {
    **{"shown_floor": "noise floor", "null_mean": "noise floor", "shown_p": "p", "pvalue": "p"},
    **{"bin_low": "from", "bin_high": "to", "shown_estimate": "estimate"},
    **{"at_least": "somewhere wrong by at least", "at_most": "nowhere by more than"},
    **{"crosses": "decreases somewhere"},
    **{"exact_pvalue": "exact p", "Jeffreys_pvalue": "Jeffreys p"},
    **{"Holm_adjusted": "adjusted p", "adjusted": "adjusted p", "corrected": "debiased"},
    **{"deviation": "observed − predicted"},
}


#: Columns of what was chosen, not measured.
SETTING_COLUMNS = (
    *("level", "alpha", "tolerance", "margin", "limit", "power", "width", "bin_low", "bin_high"),
)


_MARKDOWN = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_[]|~$#"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": " "}
)


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {
        "<": "$<$",
        "≤": r"$\le$",
        ">": "$>$",
        "|": "$|$",
        "±": r"$\pm$",
        "−": "$-$",
        "·": r"$\cdot$",
        "\n": " ",
    }
)


_NUMBER = re.compile(r"[<≤+−-]?\s?\d|–?$")


def listed_fields(values: Mapping[str, object]) -> Columns:
    """Return a two-column table of the fields that are text, numbers, or tuples of these.

    The columns are names and values; ``values`` are the fields by name.
    """
    plain = {k: v for k, v in values.items() if isinstance(v, (str, int, float, tuple))}
    names = [name.replace("_", " ") for name in plain]
    return {"": names, "value": [cell(name, value) for name, value in plain.items()]}


def attributes(rows: Iterable[object], names: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return columns of a table, lists by heading, from attributes of records.

    ``rows`` are the records, and ``names`` maps headings to attributes, which may be fields or
    properties. The cells of records that are None are empty.
    """
    listed = list(rows)
    return {
        head: [None if row is None else getattr(row, name) for row in listed]
        for head, name in names.items()
    }


def cell(name: str, value: object, spread: float = nan) -> str:
    """Return a value as a table shows it.

    ``name`` is the name of its column, which decides how it is printed; ``spread`` is the standard
    error of its row, which decides the decimals.

    Examples
    --------
    >>> cell("pvalue", 1e-5), cell("low", float("nan")), cell("slope_interval", (0.9, 1.25))
    ('< 0.001', '–', '0.900 to 1.250')
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
    if name in SETTING_COLUMNS:
        return f"{value:.3g}"
    if name.endswith(("pvalue", "adjusted", "adjusted p", "alike")):
        return format_p(float(value))
    sign = "+" if name == "deviation" and value > 0.0 else ""
    return sign + format_value(float(value), spread)


def _spreads(columns: Mapping[str, list[Any]]) -> Iterable[float]:
    """Return, for each row of a table, the standard error that decides its decimals.

    ``columns`` are the columns by name. The standard error is a column "se", or derived from an
    interval; NaN without either.
    """
    if "se" in columns:
        return map(float, columns["se"])
    if "interval" in columns:
        return [spread_of(*(value or (None, None))) for value in columns["interval"]]
    for low, high in (("low", "high"), ("bar low", "bar high"), ("band low", "band high")):
        if {low, high} <= set(columns):
            return [spread_of(*ends) for ends in zip(columns[low], columns[high], strict=True)]
    return repeat(nan)


def head(name: str) -> str:
    """Return the heading of the column ``name``; attribute names become words."""
    return HEADS.get(name, name.replace("_", " ") if name.isidentifier() else name)


def texts(
    columns: Columns, mark_up: Callable[[str], str]
) -> tuple[list[str], list[tuple[str, ...]], list[bool]]:
    """Return (headings, rows of cells, numeric): the texts of a table, with ``mark_up`` applied.

    ``numeric`` says which columns hold numbers. ``columns`` maps headings to values; a row is a
    tuple of strings.
    """
    lists = {name: list(values) for name, values in columns.items()}
    cells = [list(map(cell, repeat(name), v, _spreads(lists))) for name, v in lists.items()]
    numeric = [all(map(_NUMBER.match, column)) for column in cells]
    rows = zip(*([mark_up(text) for text in column] for column in cells), strict=True)
    return [mark_up(head(name)) for name in columns], list(rows), numeric


#: Blanks at which no line is broken: before a unit, beside ±, and around the sign of a p-value.
GLUED = re.compile(r"(?<=\d) (?=%|pp\b|sd\b|±)|(?<=\bp) (?=[=<≤])|(?<=[=<≤±]) (?=\d)")


def folded(line: str, width: int, indent: str = "") -> list[str]:
    """Return a line broken to ``width`` letters, numbers together with their units, as a list.

    All lines but the first begin with ``indent``. Repeated blanks are kept.
    """
    glue = "\x1f"  # no blank to textwrap, and in no text: control characters are written out
    parts = wrap(
        GLUED.sub(glue, line), width, subsequent_indent=indent, break_on_hyphens=False,
        replace_whitespace=False,
    )  # fmt: skip
    return [part.replace(glue, " ") for part in parts]


def listed(facts: Mapping[str, str]) -> list[str]:
    """Return "name  text" lines, aligned for a terminal, as a list of strings.

    ``facts`` maps names to texts.
    """
    width = max(map(len, facts)) + 2
    return [f"  {name:<{width}}{text}" for name, text in facts.items()]


#: Letters of a line of the terminal that tables are laid out for; None for any number.
LINE_WIDTH: ContextVar[int | None] = ContextVar("LINE_WIDTH", default=None)


#: Heads of columns that a narrow terminal does without, the least important first.
SPARED = (
    *("question", "lens", "bins", "from", "to", "statistic", "meaning"),
    *("count", "count a", "count b", "rows"),
)


#: Heads of columns that stay beside the names where a table is shown in parts.
DECIDING = (
    *("finding", "verdict", "better forecasts", "adjusted p", "p"),
    *("estimate", "error", "noise floor"),
)


#: Letters that a cell keeps when a table is narrowed, at least.
NARROWEST_CELL = 4


def aligned(columns: Columns) -> list[str]:
    """Return the lines of a table for a terminal, as wide as ``LINE_WIDTH`` allows.

    LINE_WIDTH is a context variable, the number of letters or None for any width. A table that is
    too wide first loses less important columns (lens, bins, counts), then a blank between columns.
    If that is not enough, long texts continue in lines below, and the table is shown in parts that
    all begin with its first column. Numbers are never broken. ``columns`` maps headings to the
    values of the rows.
    """
    heads, rows, numeric = texts(columns, str)
    lines: list[Sequence[str]] = [heads, *rows]
    width = LINE_WIDTH.get()
    parts, gap = [list(range(len(heads)))], 2
    if width is not None:
        parts, gap = _fitted(lines, numeric, width)
    shown: list[str] = []
    for part in parts:
        table, fixed = [[line[j] for j in part] for line in lines], [numeric[j] for j in part]
        if width is not None and gap == 2:
            table = _broken(table, fixed, width)
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        sides = [f"{{:{'>' if n else '<'}{w}}}" for n, w in zip(fixed, widths, strict=True)]
        shown += [""] * bool(shown)
        shown += [("  " + (gap * " ").join(sides).format(*line)).rstrip() for line in table]
    return shown


def _fitted(
    lines: list[Sequence[str]], numeric: list[bool], width: int
) -> tuple[list[list[int]], int]:
    """Return (parts, gap): numbers of the columns in each part of a table, and the gap.

    The gap is the number of blanks between columns. ``lines`` are the rows of cells, the head
    first; ``numeric`` says which columns hold numbers, which are not broken. One part is enough if
    all columns fit into ``width``.
    """
    columns = [*zip(*lines, strict=True)]
    wide = [max(map(len, column)) + 2 for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) + 2
             for column in columns]  # fmt: skip
    least = [w if n else min(w, max(k, NARROWEST_CELL + 2))
             for n, w, k in zip(numeric, wide, words, strict=True)]  # fmt: skip
    if wide[0] <= width // 2 - 8:  # short names stay on one line
        least[0] = wide[0]
    elif width < 2 * sum(least[:2]):
        least[0] = NARROWEST_CELL + 2
    kept = list(range(len(wide)))
    spared = (*SPARED, *["p"] * ("adjusted p" in lines[0]))
    for name in spared:
        if sum(wide[j] for j in kept) <= width:
            break
        if len(kept) > 2:
            kept = [j for j in kept if lines[0][j] != name or j == 0]
    if 0 < sum(wide[j] for j in kept) - width < len(kept):
        return [kept], 1
    if sum(least[j] for j in kept) <= width:
        return [kept], 2
    parts: list[list[int]] = [[0]]
    deciding = [j for name in DECIDING for j in kept[1:] if lines[0][j] == name]
    for j in (*deciding, *(j for j in kept[1:] if j not in deciding)):
        if len(parts[-1]) > 1 and sum(least[k] for k in parts[-1]) + least[j] > width:
            room = [part for part in parts if sum(least[k] for k in part) + least[j] <= width]
            parts += [] if room else [[0]]
            (room or parts)[-1].append(j)
        else:
            parts[-1].append(j)
    return [sorted(part) for part in parts], 2


def _broken(table: list[list[str]], fixed: list[bool], width: int) -> list[list[str]]:
    """Return a table at most ``width`` letters wide, whose widest cells continue in lines below.

    ``table`` is a list of rows of cells, the headings first, and so is the result. Cells break
    between words, and within a word only if it does not fit. ``fixed`` marks columns that are
    broken only where nothing else helps.
    """
    wide = [max(map(len, column)) for column in zip(*table, strict=True)]
    words = [max(len(w) for cell in column for w in cell.split() or [""])
             for column in zip(*table, strict=True)]  # fmt: skip
    least = [max(n, NARROWEST_CELL) for n in words]
    whole = [w if f else n for w, f, n in zip(wide, fixed, least, strict=True)]
    for narrowest in (whole, least, [NARROWEST_CELL] * len(wide)):
        while (over := sum(n + 2 for n in wide) - width) > 0:
            places = [j for j, n in enumerate(wide) if n > narrowest[j]]
            if not places:
                break
            place = max(places, key=lambda j: wide[j])
            wide[place] = max(wide[place] - over, narrowest[place])
    lines: list[list[str]] = []
    for cells in table:
        parts = (wrap(c, n, break_on_hyphens=False) for c, n in zip(cells, wide, strict=True))
        lines += map(list, zip_longest(*parts, fillvalue=""))
    return lines


def markdown_text(text: str) -> str:
    """Return text escaped for Markdown."""
    return text.translate(_MARKDOWN)


def markdown(columns: Columns) -> str:
    """Return a table in GitHub's Markdown.

    ``columns`` maps headings to the values of the rows.
    """
    heads, rows, numeric = texts(columns, markdown_text)
    rule = ["--:" if number else "---" for number in numeric]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def with_minus(text: str) -> str:
    """Return text whose negative numbers have a minus sign (U+2212) in place of a hyphen."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def latex_text(text: str) -> str:
    """Return text escaped for LaTeX."""
    return with_minus(text).translate(_LATEX)


def latex(columns: Columns) -> str:
    """Return a ``tabular`` with the rules of the package booktabs.

    ``columns`` maps headings to the values of the rows.
    """
    heads, rows, numeric = texts(columns, latex_text)
    begin = rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}"
    lines = [rf"  {' & '.join(cells)} \\" for cells in (heads, *rows)]
    rules = [begin, r"  \toprule", lines[0], r"  \midrule", *lines[1:], r"  \bottomrule"]
    return "\n".join([*rules, r"\end{tabular}"])


def html(columns: Columns) -> str:
    """Return a table as HTML; each cell has the name of its column as ``data-label``.

    ``columns`` maps headings to the values of the rows.
    """
    heads, rows, numeric = texts(columns, lambda text: escape(with_minus(text)))
    sides = [f'style="text-align:{"right" if number else "left"}"' for number in numeric]
    labels = [f'{side} data-label="{head}"' for side, head in zip(sides, heads, strict=True)]

    def line(kind: str, attributes: list[str], cells: Iterable[str]) -> str:
        elements = (f"<{kind} {a}>{c}</{kind}>" for a, c in zip(attributes, cells, strict=True))
        return f"<tr>{''.join(elements)}</tr>"

    body = "\n".join(line("td", labels, cells) for cells in rows)
    return (
        f"<table>\n<thead>{line('th', sides, heads)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )


# ------------------------------------------------------------------------------
# Notebook display of a result: verdict, at most three numbers, a small picture, and the tables.


#: How a verdict is shown: its colour, and a shape that says the same in grey.
Tone = Literal["bad", "good", "ask", "plain"]


#: Key numbers that are shown at most.
MOST_NUMBERS = 3


@dataclass(frozen=True)
class Card:
    """The first screen of a result in a notebook.

    Attributes
    ----------
    verdict : str
        A word or two; the kind of result where there is no verdict.
    tone : {"bad", "good", "ask", "plain"}
        Its colour and shape.
    headline : str
        The finding in a sentence.
    numbers : tuple of (str, str, str)
        Name, value and note of each; the first three are shown.
    remarks : tuple of str
        Sentences below the numbers.
    drawing : str
        Inline SVG, or "".
    """

    verdict: str
    tone: Tone = "plain"
    headline: str = ""
    numbers: tuple[tuple[str, str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    drawing: str = ""

    @property
    def said(self) -> str:
        """Headline without the verdict, if it begins with the words of the verdict."""
        words = self.headline
        if not words.lower().startswith(self.verdict.lower()):
            return words
        rest = words[len(self.verdict) :].lstrip(" :,;.")
        return rest[:1].upper() + rest[1:]


def element(card: Card, content: Content) -> str:
    """Return a card as HTML, with the tables and sentences of the result folded.

    ``card`` has the verdict and key numbers, ``content`` the tables and sentences.
    """
    numbers = "".join(
        f"<dt>{escape(name)}</dt><dd><b>{_typeset(value)}</b></dd><dd>{_typeset(note)}</dd>"
        for name, value, note in card.numbers[:MOST_NUMBERS]
    )
    say = f'<p class="say">{escape(card.said)}</p>' if card.said else ""
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in card.remarks)
    chip = f'<span class="chip {card.tone}">{SHAPES[card.tone]}{escape(card.verdict)}</span>'
    drawing = f'<div class="pic">{card.drawing}</div>' if card.drawing else ""
    sentences = "".join(f"<p>{escape(words)}</p>" for words in content.sentences)
    tables = "".join(f'<div class="wide">{html(table)}</div>' for table in content.tables)
    return (
        f'<div class="caltest"><style>{STYLE}</style><div class="top"><div class="left">{chip}{say}'
        f"<dl>{numbers}</dl>{remarks}</div>{drawing}</div><details><summary>All numbers</summary>"
        f'{tables}{sentences}<p class="rec">{escape(content.recipe)}</p></details></div>'
    )


def _typeset(words: str) -> str:
    """Return plain text as HTML, with minus signs in place of hyphens before numbers."""
    return escape(re.sub(r"(?<![\w.])-(?=\d)", "−", words))


#: The shapes of tones: a diamond, a disc with a tick, a square with a question mark, and none.
SHAPES: dict[Tone, str] = {
    "bad": '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M10 1l9 9-9 9-9-9z" '
    'fill="currentColor"/></svg>',
    "good": '<svg viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="9" '
    'fill="currentColor"/><path class="cut" d="M5.5 10.5l3 3 6-7"/></svg>',
    "ask": '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M2 2h16v16h-16z" fill="none" '
    'stroke="currentColor" stroke-width="2"/><text x="10" y="15" text-anchor="middle">?</text>'
    "</svg>",
    "plain": "",
}


#: Colours with a contrast above 4.5 for words and 3 for marks, on backgrounds of their own.
LIGHT = (
    "--bg:#fff;--ink:#171b20;--mut:#565f6a;--rule:#dfe3e8;--bar:#c4cfdb;--edge:#7c8c9e;"
    "--hot:#a3201d;--line:#1f4e8c;--ok:#1c6637"
)


DARK = (
    "--bg:#14171b;--ink:#e9ebee;--mut:#a7b0bb;--rule:#343a42;--bar:#46525f;--edge:#8593a3;"
    "--hot:#ff9a8f;--line:#8db8f2;--ok:#8fd3a5"
)


#: Rules for elements within ``.caltest``. Themes of JupyterLab and VS Code go before the system's.
STYLE = f"""
.caltest{{{LIGHT};background:var(--bg);color:var(--ink);border:1px solid var(--rule);
border-radius:6px;padding:12px 16px;max-width:760px;font:14px/1.4 system-ui,sans-serif}}
@media(prefers-color-scheme:dark){{.caltest{{{DARK}}}}}
[data-jp-theme-light=true] .caltest,.vscode-light .caltest{{{LIGHT}}}
[data-jp-theme-light=false] .caltest,.vscode-dark .caltest{{{DARK}}}
.caltest .top{{display:flex;flex-wrap:wrap;gap:8px 20px;justify-content:space-between}}
.caltest .left{{flex:1 1 300px;min-width:0}}.caltest .pic{{flex:0 0 240px}}
.caltest p{{margin:6px 0;color:var(--mut)}}
.caltest p.say{{font-size:16px;font-weight:600;color:var(--ink)}}
.caltest .chip{{display:inline-flex;align-items:center;gap:7px;font-weight:700;font-size:13px;
letter-spacing:.03em;padding:3px 10px;border-radius:4px;text-transform:uppercase;
border:1.5px solid currentColor}}
.caltest .chip.bad{{color:var(--hot)}}.caltest .chip.good{{color:var(--ok)}}
.caltest .chip svg{{width:15px;height:15px}}.caltest .chip text{{font:700 13px system-ui;
fill:currentColor}}.caltest .cut{{fill:none;stroke:var(--bg);stroke-width:2}}
.caltest dl{{display:grid;grid-template-columns:max-content max-content 1fr;gap:2px 14px;
margin:8px 0;align-items:baseline}}.caltest dt{{color:var(--mut);font-weight:400}}
.caltest dd{{margin:0}}
.caltest dd b{{font-size:17px;font-variant-numeric:tabular-nums}}
.caltest dd+dd{{color:var(--mut);font-size:13px}}
.caltest summary{{cursor:pointer;color:var(--mut);font-size:13px;padding:4px 0}}
.caltest .wide{{overflow-x:auto}}
.caltest table{{border-collapse:collapse;font-size:13px;margin:6px 0;color:var(--ink);
background:none}}.caltest tr{{background:none}}
.caltest th{{font-weight:600;color:var(--mut);border-bottom:1px solid var(--mut)}}
.caltest td{{border-bottom:1px solid var(--rule)}}
.caltest td,.caltest th{{padding:3px 12px 3px 0}}
.caltest .rec{{font:12px/1.4 ui-monospace,Consolas,monospace}}
.caltest .pic svg{{display:block;max-width:100%;height:auto;font:12px system-ui,sans-serif}}
.caltest .a{{fill:var(--ink);font-weight:600}}.caltest .k{{fill:var(--mut);
paint-order:stroke;stroke:var(--bg);stroke-width:4px;stroke-linejoin:round}}
.caltest .g{{stroke:var(--rule);fill:none}}.caltest .x{{stroke:var(--mut);fill:none}}
.caltest .d{{stroke:var(--ink);stroke-dasharray:5 4;fill:none}}
.caltest .b{{fill:var(--bar);stroke:var(--edge);stroke-width:.8}}
.caltest .w{{fill:var(--bar);opacity:.6}}
.caltest .o{{fill:var(--hot);stroke:var(--bg)}}
.caltest .i{{fill:var(--bg);stroke:var(--mut);stroke-width:1.8}}
.caltest .c{{fill:none;stroke:var(--line);stroke-width:2}}
.caltest .e{{fill:none;stroke:var(--mut);stroke-width:1.6}}
.caltest .e.s{{stroke:var(--hot);stroke-width:2.4}}
.caltest .r{{stroke:var(--ink);stroke-width:2}}
@media(max-width:520px){{.caltest dl{{grid-template-columns:max-content 1fr}}
.caltest dd+dd{{grid-column:1/-1;margin-bottom:4px}}}}
"""


# ------------------------------------------------------------------------------
# Results as data frames: typed columns of plain values for Polars, pandas and Arrow.


#: A column: its type, and one value a row, which is None where there is none.
TypedColumn = tuple[type, Sequence[Any]]


#: The types that a column can have, by the annotation of a field without "| None".
COLUMN_TYPES: dict[str, type] = {"float": float, "int": int, "bool": bool, "str": str}


COLUMN_TYPES |= dict.fromkeys(
    ("AuditVerdict", "ComparisonVerdict", "Finding", "GateVerdict", "GradeVerdict"), str
)


#: The types of columns by the kind of an array's type.
ARRAY_TYPES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "M": datetime}


def to_frame(columns: Mapping[str, TypedColumn]) -> polars.DataFrame | pandas.DataFrame:
    """Return a data frame from typed columns: Polars if it is imported, or pandas is missing.

    Otherwise it is a pandas data frame. ``columns`` maps names to (type, values), with None for a
    missing value.
    """
    if "polars" not in sys.modules and ("pandas" in sys.modules or find_spec("pandas")):
        return _in_pandas(columns)
    return in_polars(columns)


def in_polars(columns: Mapping[str, TypedColumn]) -> polars.DataFrame:
    """Return a Polars data frame; missing values are null.

    ``columns`` maps names to (type, values).
    """
    import polars

    types: dict[type, Any] = {float: polars.Float64, int: polars.Int64, bool: polars.Boolean}
    types |= {str: polars.String, datetime: polars.Datetime("us")}
    return polars.DataFrame(
        [polars.Series(name, values, dtype=types[kind]) for name, (kind, values) in columns.items()]
    )


def _in_pandas(columns: Mapping[str, TypedColumn]) -> pandas.DataFrame:
    """Return a pandas data frame; integers and booleans with gaps have nullable types.

    ``columns`` maps names to (type, values), with None for a missing value.
    """
    import pandas

    frame: dict[str, Any] = {}
    for name, (kind, values) in columns.items():
        types = {float: "float64", int: "int64", bool: "bool", str: "object"}
        types[datetime] = "datetime64[us]"
        if any(value is None for value in values):
            types |= {int: "Int64", bool: "boolean"}
        if kind is float:
            values = [nan if value is None else value for value in values]
        frame[name] = pandas.Series(values, dtype=types[kind])
    return pandas.DataFrame(frame)


def columns_of_arrays(columns: Mapping[str, Iterable[object]]) -> dict[str, TypedColumn]:
    """Return typed columns, (type, values) by name, from sequences; None marks a missing value."""
    return {name: _typed_column(values) for name, values in columns.items()}


def _typed_column(values: Iterable[object]) -> TypedColumn:
    """Return (type, values) of a column, typed by its first value; float if there is none."""
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else [*values]
    if isinstance(values, np.ndarray) and values.dtype.kind in ARRAY_TYPES:
        return ARRAY_TYPES[values.dtype.kind], listed
    first = next((value for value in listed if value is not None), nan)
    if isinstance(first, str):
        return str, [None if value is None else str(value) for value in listed]
    kind = next(kind for kind in (bool, int, float) if isinstance(first, kind))
    return kind, listed


def columns_of_records(records: Iterable[Any], kind: type | None = None) -> dict[str, TypedColumn]:
    """Return typed columns, (type, values) by name, from fields that are text, numbers or limits.

    A pair of limits becomes two columns, whose names end in ``_low`` and ``_high``. Fields that all
    results share are left out. ``kind`` is the class of the ``records``, needed where there are
    none.
    """
    rows = [*records]
    columns: dict[str, TypedColumn] = {}
    for field in fields(kind or type(rows[0])):
        annotation = str(field.type).removesuffix(" | None")
        if field.kw_only:
            continue
        values = [getattr(row, field.name) for row in rows]
        if annotation == "tuple[float, float]":
            for place, end in enumerate(("low", "high")):
                ends = [None if pair is None else pair[place] for pair in values]
                columns[f"{field.name}_{end}"] = float, ends
        elif (column_type := COLUMN_TYPES.get(annotation)) is not None:
            words = column_type is str
            plain = [str(v) if words and v is not None else v for v in values]
            columns[field.name] = column_type, plain
    return columns
