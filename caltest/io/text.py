"""Text with delimiters, by compiled code where it is well formed, else row by row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from caltest._base.progress import progress
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError
from caltest.io.opening import Opened, imported
from caltest.tables.source import MISSING, Column, Source, is_number

#: A number with a decimal comma.
DECIMAL = re.compile(r"\s*-?\d+,\d+\s*%?\s*")
#: Numbers below 1000, and those with groups of three digits, as beside decimal commas.
_WHOLE = re.compile(r"-?\d{1,3}(,\d+)?")
_GROUPED = re.compile(r"-?[1-9]\d{0,2}([.\s]\d{3})+(,\d+)?")


class _Text(NamedTuple):
    """Delimited text, the first row that counts, and the lines before it."""

    data: bytes
    delimiter: str
    first: list[str]
    skipped: int

    @property
    def comma(self) -> bool:
        """Whether numbers have decimal commas, beside which cells are not told apart by commas."""
        return self.delimiter in ";\t|" and any(DECIMAL.fullmatch(cell) for cell in self.first)


def read_delimited(opened: Opened) -> Source:
    """Find delimiter, header and first row; columns are read when they are asked for."""
    data = opened.file.read().removeprefix(b"\xef\xbb\xbf")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # as Excel's "Unicode text"
        data = data.decode("utf-16").encode()
    notes: tuple[str, ...] = ()
    if not data.isascii():
        data, notes = _as_utf8(data)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        reason = f"line {line} holds a NUL byte: this is not a text file in UTF-8"
        raise InvalidPredictionsError(reason)
    head = data[: 1 << 20].lstrip().partition(b"\n")[0]
    delimiter = max(",;\t|", key=lambda mark: head.count(mark.encode()))
    delimiter = delimiter if delimiter.encode() in head else " "
    (line, header), (_, first) = islice(chain(_rows(data, delimiter), [(0, [])] * 2), 2)
    names = [name.strip() for name in header]
    "".join(names).encode()  # fails where the bytes were not UTF-8
    if names and all(is_number(name) for name in names):
        text, all_columns = _Text(data, delimiter, header, 0), range(len(names))
        return Source(
            ["probs"],
            lambda _: [np.column_stack(_columns(text, all_columns))],
            bare="the file begins with numbers: add a header line that names the columns, such as "
            "p_0,p_1,label, or name the file of the labels with label=",
        )
    if not first:
        raise InvalidPredictionsError("there is a header but no rows")
    text, place = _Text(data, delimiter, first, line), {name: j for j, name in enumerate(names)}
    return Source(names, lambda places: _columns(text, [place[n] for n in places]), notes=notes)


def _as_utf8(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return text in UTF-8, from cp1252 with a note where no letter is in UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):  # a file of both encodings stays as it is
            if data.decode(errors="ignore").isascii():
                note = "text read as cp1252, of Windows, as it is not UTF-8; where letters are "
                return data.decode("cp1252").encode(), (f"{note}wrong, save the file in UTF-8",)
    return data, ()


def _rows(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield header and rows that are not blank, all of one length, with the lines they end on."""
    csv.field_size_limit(2**31 - 1)  # texts of any length stand beside predictions
    # columns that nobody asks for may be in any encoding
    file = TextIOWrapper(BytesIO(data), "utf-8", errors="surrogateescape", newline="")
    strict = data.count(b'"') % 2 == 1  # a quote that stays open would swallow rows
    reader = csv.reader(file, delimiter=delimiter, strict=strict)
    width = 0
    try:
        for row in reader:
            width = width or len(row)
            if row and len(row) == width:
                yield reader.line_num, row
            elif any(cell.strip() for cell in row):
                raise InvalidPredictionsError(
                    f"line {reader.line_num} has {several(len(row), 'cell')}, the header {width}"
                )
    except csv.Error as error:
        raise InvalidPredictionsError(f"line {reader.line_num}: {error}") from None


def _columns(text: _Text, places: Sequence[int]) -> list[Column]:
    """Read columns in one pass, by compiled code where that finds nothing wrong."""
    try:
        return _fast(text, places)
    except (ValueError, ImportError):
        cells: list[list[str]] = [[] for _ in places]
    with progress(text.data.count(b"\n"), "row") as done:
        for line, row in _rows(text.data, text.delimiter):
            done(1)
            if line > text.skipped:
                for column, j in zip(cells, places, strict=True):
                    column.append(row[j].strip())
    "".join(chain.from_iterable(cells)).encode()  # fails where the bytes were not UTF-8
    return [typed(column, text.comma) for column in cells]


def typed(cells: list[str], comma: bool) -> Column:
    """Return numbers where all cells are, with decimal commas and groups of digits, else text."""
    numerals = [c for c in cells if c.lower() not in MISSING]
    groups = [c for c in numerals if not _WHOLE.fullmatch(c)] if comma else []
    if groups and all(map(_GROUPED.fullmatch, groups)):
        cells = [re.sub(r"[.\s]", "", c) for c in cells]
    numbers = [c.replace(",", ".") for c in cells] if comma else cells
    try:
        return np.array([np.nan if c.lower() in MISSING else float(c) for c in numbers])
    except ValueError:
        return np.array(cells, dtype=object)


def _fast(text: _Text, places: Sequence[int]) -> list[Column]:
    """Read numbers where the first cell is one, and text, or raise what the reader raises."""
    body = 0
    for _ in range(text.skipped):
        body = text.data.find(b"\n", body) + 1
    quotes = text.data.count(b'"', body)
    if quotes % 2:
        raise ValueError("a quote stays open")
    first = [c.replace(",", ".") for c in text.first] if text.comma else text.first
    numeric = [is_number(cell) or cell.strip().lower() in MISSING for cell in first]
    words = [j for j in places if not numeric[j]]
    if text.comma and any(_GROUPED.fullmatch(text.first[j].strip()) for j in words):
        raise ValueError("digits are in groups")
    try:
        pyarrow = imported("pyarrow.csv", "parquet", "text")
    except ImportError:
        if words or text.comma:
            raise
        table = np.loadtxt(BytesIO(text.data), comments=None, ndmin=2, delimiter=text.delimiter,
                           skiprows=text.skipped, quotechar='"')  # fmt: skip
        return list(table[:, places].T)
    from pyarrow import compute, float64, string
    from tqdm.utils import CallbackIOWrapper

    names = [str(j) for j in range(len(text.first))]
    with progress(len(text.data), "B") as done:
        table = pyarrow.read_csv(
            CallbackIOWrapper(done, BytesIO(text.data)),
            pyarrow.ReadOptions(column_names=names, skip_rows=text.skipped),
            pyarrow.ParseOptions(delimiter=text.delimiter, newlines_in_values=quotes > 0),
            pyarrow.ConvertOptions(
                include_columns=[names[j] for j in places],
                column_types={names[j]: string() if j in words else float64() for j in places},
                decimal_point="," if text.comma else ".",
                null_values=[form for w in MISSING for form in (w, w.upper(), w.title(), "NaN")],
            ),
        )
    columns = zip(places, table.columns, strict=True)
    trim = compute.utf8_trim_whitespace
    return [(trim(column) if j in words else column).to_numpy() for j, column in columns]
