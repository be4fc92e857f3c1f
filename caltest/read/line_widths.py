"""Widths of the lines of text with a delimiter, which polars pads and cuts without a word.

:func:`refuse_long_lines` checks a file before it is parsed, :class:`CheckedLines` a stream while it
is read; the error names the line and its number of fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError

#: Bytes that are looked at together.
BYTES_A_BLOCK = 1 << 18


#: Longest line in bytes; a longer one would take several times its size in memory.
LONGEST_LINE = 1 << 28


def refuse_long_lines(path: Path) -> None:
    """Raise InvalidPredictionsError for a file with a line of more than 256 MB.

    Only larger files are read for it; O(bytes).
    """
    if path.stat().st_size <= LONGEST_LINE:
        return
    line, length = 1, 0
    with path.open("rb") as file:
        while data := file.read(BYTES_A_BLOCK):
            first = data.find(b"\n")
            length += len(data) if first < 0 else first
            if length > LONGEST_LINE:
                raise InvalidPredictionsError(
                    f"line {line} is longer than {LONGEST_LINE >> 20} MB: write one row, or one "
                    "JSON object, a line"
                )
            if first >= 0:
                line += data.count(b"\n")
                length = len(data) - data.rfind(b"\n") - 1


class CheckedLines(NamedTuple):
    """File whose lines all have as many cells as the header, and notes on lines left out."""

    path: Path
    notes: tuple[str, ...] = ()


def checked_lines(path: Path, delimiter: str, width: int, folder: Path) -> CheckedLines:
    """Check that all lines have ``width`` cells; return a copy in ``folder`` without empty lines.

    The signs that end a cell or a line are periodic where all lines are alike, which is checked in
    blocks of 256 kB; only a block that differs, or that holds quotation marks, is counted line by
    line. O(bytes), one pass; memory is one block, or the longest text in quotation marks.

    Raises
    ------
    InvalidPredictionsError
        For a line that is longer or shorter than the header, with its number, and for a quotation
        mark that is not closed.
    """
    sign, empty, first, rest = ord(delimiter), list[int](), 1, b""
    with path.open("rb") as file:
        while data := file.read(BYTES_A_BLOCK):
            data = rest + data
            end = data.rfind(b"\n") + 1
            if b'"' in data and end and data.count(b'"', 0, end) % 2:
                end = _closed(data)
            data, rest = data[:end], data[end:]
            first += _check(data, sign, width, first, empty)
        if rest:
            if rest.count(b'"') % 2:
                raise InvalidPredictionsError(
                    f"a quotation mark opens in line {first} or later and is not closed"
                )
            _check(rest + b"\n", sign, width, first, empty)
    if not empty:
        return CheckedLines(path)
    copy = folder / "lines"
    skipped, line = {*empty}, 0
    with path.open("rb") as old, copy.open("wb") as new:
        for text in old:
            line += 1
            if line not in skipped:
                new.write(text)
    return CheckedLines(copy, (f"left out {several(len(empty), 'empty line')}",))


def _closed(data: bytes) -> int:
    """Return the end of the last complete line outside quotation marks; 0 if there is none."""
    cells = np.frombuffer(data, np.uint8)
    inside = np.bitwise_xor.accumulate(cells == ord('"'))
    ends = np.flatnonzero((cells == 10) & ~inside)
    return int(ends[-1]) + 1 if ends.size else 0


def _check(data: bytes, sign: int, width: int, first: int, empty: list[int]) -> int:
    """Check the widths of whole lines; return the number of line feeds.

    ``sign`` separates cells, ``width`` is the number of cells, ``first`` the number of the first
    line. Numbers of empty lines are appended to ``empty``.
    """
    if not data:
        return 0
    cells = np.frombuffer(data, np.uint8)
    plain = b'"' not in data
    if sign == ord(" "):  # columns are set apart by any number of blanks
        return data.count(b"\n")
    if plain and width > 1:
        signs = cells[(cells == sign) | (cells == 10)]
        if signs.size % width == 0:
            ends = signs.reshape(-1, width) == 10
            if ends[:, -1].all() and np.count_nonzero(ends) == len(ends):
                return len(ends)
    outside = cells if plain else _outside(cells)
    ends = np.flatnonzero(outside == 10)
    starts = np.concatenate([[0], ends[:-1] + 1])
    marks = np.concatenate([[0], np.cumsum(outside == sign)])
    found = marks[ends] - marks[starts] + 1
    length = ends - starts
    blank = (length == 0) | ((length == 1) & (cells[starts] == 13))
    feeds = np.concatenate([[0], np.cumsum(cells == 10)])
    for k in np.flatnonzero((found != width) & ~blank)[:1].tolist():
        raise InvalidPredictionsError(
            f"line {first + int(feeds[starts[k]])} has {several(int(found[k]), 'cell')}, the "
            f"header {width}"
        )
    empty += (first + feeds[starts[blank]]).tolist()
    return int(feeds[-1])


def _outside(cells: AnyArray) -> AnyArray:
    """Return bytes in which those within quotation marks are 0, same shape."""
    return np.where(np.bitwise_xor.accumulate(cells == ord('"')), np.uint8(0), cells)
