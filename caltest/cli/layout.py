"""How results are printed: laid out for the width that there is, plain where they are piped.

:func:`print_result` is the entry. Where a table is too wide, the least important columns go first;
piped output without COLUMNS keeps its tables whole, and breaks sentences at :data:`PIPED_WIDTH`.
"""

from __future__ import annotations

import os
import re
import sys
from contextvars import ContextVar

from caltest._base.written import several
from caltest.results import AuditReport
from caltest.results.audits import PLAIN_WIDTH
from caltest.results.base import Result
from caltest.results.rendering import LINE_WIDTH, Card, Tone, folded

#: The symbol of a verdict, and its colour in a terminal.
SYMBOLS: dict[Tone, tuple[str, str]] = {
    "bad": ("◆", "bold red"),
    "good": ("✓", "bold green"),
    "ask": ("?", "bold yellow"),
    "plain": ("", "bold"),
}


#: Whether all notes and recipes are printed; set for each command.
VERBOSE: ContextVar[bool] = ContextVar("VERBOSE", default=False)


#: Notes that are printed without ``--verbose``, and how lines of recipes are known.
NOTES_SHOWN, RECIPE = 2, re.compile(r" · caltest \d")


#: Lines are never narrower than this, whatever COLUMNS says.
NARROWEST = 40


#: Letters of a line of sentences where no width is known.
PIPED_WIDTH = 100


#: Lines that stay whole where no width is known: rows of three or more columns, and commands.
WHOLE_LINE = re.compile(r"\S {2,}\S.*\S {2,}\S|\b[Rr]un: ?caltest |^\s*caltest [a-z]+ ")


#: The name of a fact and the blanks behind it, below which a long value goes on.
NAMED_VALUE = re.compile(r" {2}\S(?:[^ ]| (?! ))* {2,}(?=\S)")


def line_width() -> int | None:
    """Return the width to print in: COLUMNS, or the width of the terminal; None if unknown."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), NARROWEST)
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, NARROWEST)
    except (OSError, ValueError):
        return None


def print_result(result: object) -> None:
    """Print a result or text, wrapped to the width of the terminal.

    Colours are used on a terminal only. Text is printed unchanged. Without a known width, sentences
    of a result are broken at ``PIPED_WIDTH``, and tables and commands keep their lines.
    """
    width = line_width()
    if not isinstance(result, Result):
        print(result, flush=True)
        return
    if width is None:
        print(piped(result), flush=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(width=width, highlight=False, soft_wrap=False)
    card = result._card()
    line = verdict_line(card)
    if line is not None:
        console.print(Text("\n".join(wrapped(line, width)), style=SYMBOLS[card.tone][1]))
    text = Text(laid_out(_unsaid(_laid_text(result, width), card), width))
    text.highlight_regex(r"(?m)^\S.*", "bold")
    if isinstance(result, AuditReport):
        text.highlight_regex(r"(?m)miscalibrated( \(.*\)|\*)?$", "red")
    console.print(text)


def piped(result: Result) -> str:
    """Return a result as plain text for a file or a pipe.

    Sentences and notes have lines of at most ``PIPED_WIDTH`` characters. Rows of tables, and lines
    that end in a command to copy, are not broken.
    """
    text = str(result)
    if isinstance(result, AuditReport):  # its text is broken already, at another width
        text = "\n".join(result._blocks(PLAIN_WIDTH))
    return "\n".join(
        part
        for line in text.split("\n")
        for part in ([line] if WHOLE_LINE.search(line) else wrapped(line, PIPED_WIDTH))
    )


def _laid_text(result: Result, width: int) -> str:
    """Return a result as lines of plain text, with tables of at most ``width`` characters."""
    token = LINE_WIDTH.set(width)
    try:
        if not isinstance(result, AuditReport):
            return str(result)
        table, verdict, foot = result._blocks(width)
        indented = (f"  {line}" if line else "" for line in f"{verdict}\n{foot}".split("\n"))
        return "\n".join([table, *indented])
    finally:
        LINE_WIDTH.reset(token)


def _unsaid(text: str, card: Card) -> str:
    """Return the text of a result without sentences that were printed above it.

    ``text`` is the result as printed, and ``card`` its summary (verdict, headline, key numbers), of
    which a coloured line was printed: the verdict and the headline are removed. Notes beyond the
    second and recipes beyond the first are replaced by their number, unless ``--verbose`` was
    given.
    """
    lines, kept = text.split("\n"), list[str]()
    verdict = card.verdict.casefold()
    said = {verdict, verdict.removeprefix("gate "), _plain_words(card.headline)}
    said |= {_plain_words(f"{card.verdict}: {card.headline}")}
    notes = recipes = 0
    for line in lines:
        words = _plain_words(line)
        named = re.match(r"\s*(Verdict|Finding): ", line) is not None
        if SYMBOLS[card.tone][0] and (words in said or (named and words.startswith(tuple(said)))):
            words = ""
            if kept and kept[-1] == "":
                continue
            line = ""
        notes += line.lstrip().startswith("Note: ")
        recipe = RECIPE.search(line) is not None
        recipes += recipe
        many = (line.lstrip().startswith("Note: ") and notes > NOTES_SHOWN) or (
            recipe and recipes > 1
        )
        if VERBOSE.get() or not many:
            kept.append(line)
    more = [several(notes - NOTES_SHOWN, "more note")] if notes > NOTES_SHOWN else []
    more += [f"the methods of {several(recipes - 1, 'other row')}"] if recipes > 1 else []
    if more and not VERBOSE.get():
        kept.append(f"  With --verbose: {' and '.join(more)}.")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept))


def _plain_words(line: str) -> str:
    """Return a line in lower case for comparison with other lines.

    "Verdict:" or "Finding:" at its beginning, blanks at its ends and a last full stop are removed.
    """
    line = re.sub(r"^\s*(Verdict|Finding): ", "", line)
    return line.strip().rstrip(".").casefold()


def in_brief(result: Result) -> str:
    """Return verdict and key numbers of a result as lines of plain text, without notes and recipes.

    Lines are joined by line feeds, and wrapped to the width of the terminal if it is known.
    """
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
    """Return a line such as "◆ MISCALIBRATED  …": symbol, verdict in capitals, and finding.

    ``card`` is the summary of a result, with these. None for results without a verdict.
    """
    symbol = SYMBOLS[card.tone][0]
    if not symbol:
        return None
    rest = card.headline[len(card.verdict) :] if card.said != card.headline else f"  {card.said}"
    return f"{symbol} {card.verdict.upper()}{rest}".rstrip()


def laid_out(text: str, width: int) -> str:
    """Return text whose lines are wrapped to ``width`` characters."""
    return "\n".join(part for line in text.split("\n") for part in wrapped(line, width))


def wrapped(line: str, width: int) -> list[str]:
    """Return the lines into which a line is wrapped, of at most ``width`` characters each.

    Further lines are indented: to the beginning of the value in a line of a name and a value, by
    two more blanks in lists and notes.
    """
    if len(line) <= width:
        return [line]
    named = NAMED_VALUE.match(line)
    indent = len(line) - len(line.lstrip())
    if named is not None and named.end() <= width // 2:
        indent = named.end()
    elif " · " in line or line.lstrip().startswith(("- ", "Note: ")):
        indent += 2
    return folded(line, width, " " * indent)
