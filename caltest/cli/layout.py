"""How results are printed: laid out for the width that there is, plain where they are piped.

:func:`print_result` is the entry. Where a table is too wide, the least important columns go first;
piped output without COLUMNS keeps its own width.
"""

from __future__ import annotations

import os
import re
import sys
from textwrap import wrap

from caltest.results import AuditReport
from caltest.results.base import Result
from caltest.results.rendering import LINE_WIDTH, Card, Tone

#: The symbol of a verdict, and its colour in a terminal.
SYMBOLS: dict[Tone, tuple[str, str]] = {
    "bad": ("◆", "bold red"),
    "good": ("✓", "bold green"),
    "ask": ("?", "bold yellow"),
    "plain": ("", "bold"),
}


#: Lines are never narrower than this, whatever COLUMNS says.
NARROWEST = 40


#: The name of a fact and the blanks behind it, below which a long value goes on.
NAMED_VALUE = re.compile(r" {2}\S(?:[^ ]| (?! ))* {2,}(?=\S)")


def line_width() -> int | None:
    """Return the width to print in: COLUMNS, or that of the terminal; None if unknown."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), NARROWEST)
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, NARROWEST)
    except (OSError, ValueError):
        return None


def print_result(result: object) -> None:
    """Print a result, wrapped to the width of the terminal, with colours on a terminal only."""
    width = line_width()
    if width is None or not isinstance(result, Result):
        print(result, flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(width=width, highlight=False, soft_wrap=False)
    if isinstance(result, AuditReport):
        console.print(result)
        return
    token = LINE_WIDTH.set(width)
    try:
        plain = str(result)
    finally:
        LINE_WIDTH.reset(token)
    card = result._card()
    line = verdict_line(card)
    text = Text(laid_out(plain if line is None else without(plain, card), width))
    text.highlight_regex(r"^\S.*", "bold")
    if line is not None:
        console.print(Text("\n".join(wrapped(line, width)), style=SYMBOLS[card.tone][1]))
    console.print(text)


def in_brief(result: Result) -> str:
    """Return verdict and key numbers of a result as text, without notes and recipes."""
    card = result._card()
    line = verdict_line(card) or ": ".join(filter(None, (card.verdict, card.said)))
    names = [name for name, *_ in card.numbers]
    wide = max(map(len, names), default=0)
    numbers = [f"  {name:<{wide}}  {value}  {note}".rstrip() for name, value, note in card.numbers]
    width = line_width()
    lines = [line, *numbers]
    if width is not None:
        lines = [part for each in lines for part in wrapped(each, width)]
    return "\n".join(lines)


def verdict_line(card: Card) -> str | None:
    """Return the symbol, the verdict and the finding; None for results without a verdict."""
    symbol = SYMBOLS[card.tone][0]
    if not symbol:
        return None
    rest = card.headline[len(card.verdict) :] if card.said != card.headline else f"  {card.said}"
    return f"{symbol} {card.verdict.upper()}{rest}".rstrip()


def without(text: str, card: Card) -> str:
    """Return text without the line that says the verdict and the finding of the card once more."""
    said = {f"{head}{card.headline}".lower() for head in ("", "verdict: ", "finding: ")}
    kept = [line for line in text.split("\n") if line.strip().lower() not in said - {""}]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def laid_out(text: str, width: int) -> str:
    """Return text whose lines are wrapped to ``width`` characters."""
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, width))


def wrapped(line: str, width: int) -> list[str]:
    """Return a line wrapped to ``width``: values continue below themselves, sentences indented."""
    if len(line) <= width:
        return [line]
    named = NAMED_VALUE.match(line)
    indent = len(line) - len(line.lstrip())
    if named is not None and named.end() <= width // 2:
        indent = named.end()
    elif " · " in line or line.lstrip().startswith(("- ", "Note: ")):
        indent += 2
    # Blanks within a line that is a list of facts are kept, as textwrap would join them.
    return wrap(
        line, width, subsequent_indent=" " * indent, break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False,
    )  # fmt: skip
