"""From files to tables of polars, also compressed ones: ``FILE_FORMATS`` lists the formats.

:func:`open_table` recognises a format by content and suffix and returns a :class:`Table`, a lazy
frame with names for messages. Logs of lm-eval, Inspect and HELM become tables as well. Lines of
other widths than the header are refused, as polars pads and cuts them.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import sys
import tempfile
import zipfile
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from io import BytesIO, StringIO
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest._base.arrays import AnyArray
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.contract import LABELS, PROBABILITIES
from caltest.read.expressions import key

if TYPE_CHECKING:
    import polars as pl


class FileToOpen(NamedTuple):
    """File of a known format: its path, its name in messages, and what its opener may need.

    ``folder`` is a temporary folder for corrected copies. ``sheet`` is the sheet of an Excel file,
    and ``decimal`` the decimal mark of a text file; None if none is named.
    """

    path: Path
    name: str
    folder: Path
    sheet: str | None = None
    decimal: str | None = None


class Format(NamedTuple):
    """File format: its name, endings and first bytes, and the function that opens a file.

    ``name`` is the value of the option ``format``, ``endings`` are suffixes such as ".csv",
    ``beginning`` the first bytes, and ``opened`` is a function that returns the open table
    (:class:`Table`) of a file. A file without an ending is known by its first bytes. A format
    without endings is one of JSON, known by its content. ``docs/files.md`` has a row for each
    format.
    """

    name: str
    endings: tuple[str, ...]
    beginning: bytes | tuple[bytes, ...]
    opened: Callable[[FileToOpen], Table]


#: All formats; the functions that open their files stand below.
FILE_FORMATS = (
    Format("csv", (".csv", ".tsv", ".txt", ".tab"), (), lambda file: _delimited(file)),
    Format("json", (".json", ".jsonl", ".ndjson"), (b"{", b"["), lambda file: _json(file, "")),
    Format("parquet", (".parquet",), b"PAR1", lambda file: _parquet(file)),
    Format("arrow", (".arrow", ".feather", ".ipc"), b"ARROW1", lambda file: _arrow(file)),
    Format("excel", (".xlsx", ".xls", ".xlsb", ".ods"), (), lambda file: _excel(file)),
    Format("npz", (".npz",), (), lambda file: _numpy(file)),
    Format("npy", (".npy",), b"\x93NUMPY", lambda file: _numpy(file)),
    Format("lm-eval", (), (), lambda file: _json(file, "lm-eval")),
    Format("inspect", (".eval",), (), lambda file: _inspect(file)),
    Format("helm", (), (), lambda file: _json(file, "helm")),
)


#: What ``format`` may be.
FORMATS = tuple(known.name for known in FILE_FORMATS)


#: First bytes of compressed files.
PACKED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".zip": b"PK\x03\x04"}


#: Cells that say that there is no value.
MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "null", "None"]


#: First rows whose cells decide what the type of a column is, and first bytes of text looked at.
TYPED_BY, HEAD = 10_000, 1 << 16


#: Names of an array or list of all probabilities of a row, whose columns are p0, p1, …
NAMES_OF_ARRAYS = {
    "p",
    "prob",
    "probs",
    "proba",
    "probabilities",
    "y_prob",
    "y_proba",
    "y_score",
    "softmax",
}


#: Most columns that one array or list becomes.
WIDEST = 5000


class UnclearMark(NamedTuple):
    """Mark in the numbers of a text column that may be of decimals or of thousands.

    ``cell`` is the first number with it, such as "1.200", and ``mark`` the comma or point;
    ``everywhere`` says that all numbers have it, so that readings differ by a factor only, and
    ``decimal`` that it was read as a decimal mark, not as text.
    """

    cell: str
    mark: str
    everywhere: bool
    decimal: bool


@dataclass(frozen=True)
class Table:
    """Open table: its rows as a lazy polars frame, and its origin.

    ``name`` is the name of the file in messages, "" for a table in memory; ``frame`` has the rows,
    and ``notes`` say how they were read. ``text`` is the delimited file from which ``frame`` is
    scanned, with the keyword arguments ``scan`` of ``polars.scan_csv``, None for other formats;
    ``log`` is the evaluation harness whose log it is, "" for none, and ``content`` its parsed JSON;
    ``parts`` are (name, number of rows) of the files that were pooled; ``seekable`` says that later
    rows can be read without the earlier ones, and ``first`` that these are the first rows of a
    larger table. ``left_out`` is a clause on arrays of a NumPy file that are no columns, "" without
    any; ``unclear`` maps columns of a text file whose numbers have two readings to their mark.
    """

    name: str
    frame: pl.LazyFrame
    notes: tuple[str, ...] = ()
    text: Path | None = None
    scan: Mapping[str, Any] = field(default_factory=dict)
    log: str = ""
    content: Any = None
    parts: tuple[tuple[str, int], ...] = ()
    seekable: bool = False
    first: bool = False
    left_out: str = ""
    unclear: Mapping[str, UnclearMark] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, Any]:
        """Polars types of the columns of this table, by name."""
        return dict(self.frame.collect_schema())


@contextmanager
def open_table(
    path: str | PathLike[str], format: str | None = None, sheet: str | None = None,
    decimal: str | None = None,
) -> Iterator[Table]:  # fmt: skip
    """Open a file as a table, ``-`` for the standard input; unpacked files are removed at the end.

    A context manager, which yields the :class:`Table`: its rows as a lazy polars frame, and names
    for messages. ``format`` names the format, such as "csv"; by default the file's suffix or first
    bytes tell. ``sheet`` is the sheet of an Excel file; None for the only one that holds a table.
    ``decimal`` is the decimal mark of a text file; None if its first rows tell.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When it cannot be read; the message names the file.
    """
    name = "standard input" if str(path) == "-" else Path(path).name
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="caltest-")))
            table = _opened(FileToOpen(Path(path), name, folder, sheet, decimal), format)
        except InvalidPredictionsError as error:
            raise error.of_file(name) from None
        except FileNotFoundError:
            raise
        except unreadable() as error:
            raise InvalidPredictionsError(f"{name}: {_reason(error)}") from None
        yield table


def unreadable() -> tuple[type[BaseException], ...]:
    """Return the exception classes by which polars reports files that it cannot read."""
    import polars as pl

    return pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError


def _reason(error: BaseException) -> str:
    reason = str(error).partition("\n")[0][:200]
    if "expected" in reason and "rows" in reason:
        return f"a quotation mark opens and is not closed ({reason})"
    return f"this is not a readable file: {reason}"


def _opened(source: FileToOpen, format: str | None) -> Table:
    path, _, folder, sheet, decimal = source
    if str(path) == "-":
        path = folder / "standard input"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
    if path.is_dir():
        raise InvalidPredictionsError(
            f"this is a folder, not a file of predictions: name its files, such as "
            f"'{path / '*.parquet'}'"
        )
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise InvalidPredictionsError("the file is empty, without even a header")
    ending = path.suffix.lower() or _beginning(path)
    if ending in PACKED and format not in ("npz", "excel", "inspect"):
        path, ending = _unpacked(path, ending, folder)
    fits = (k for k in FILE_FORMATS if (k.name == format if format else ending in k.endings))
    known = next(fits, None)
    if known is None:
        endings = ", ".join(e for k in FILE_FORMATS for e in k.endings)
        raise InvalidPredictionsError(
            f"files of type {ending or '(no ending)'} are unknown; known are {endings}, also in "
            ".gz, .zst and .zip: name its format",
            [Reading({"format": "csv"}, "it is text with a delimiter")],
        )
    if sheet is not None and known.name != "excel":
        raise InvalidPredictionsError(
            "only Excel files have sheets: leave the sheet out", [Reading({"sheet": None})]
        )
    if decimal is not None and known.name != "csv":
        raise InvalidPredictionsError(
            "only text files have a decimal mark: leave it out", [Reading({"decimal": None})]
        )
    return known.opened(source._replace(path=path))


def _beginning(path: Path) -> str:
    """Return the ending, such as ".parquet", that a file's first bytes stand for; else ".csv"."""
    with path.open("rb") as file:
        start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    marks = PACKED | {k.endings[0]: k.beginning for k in FILE_FORMATS if k.endings}
    return next(
        (ending for ending, mark in marks.items() if mark and start.startswith(mark)), ".csv"
    )


# ------------------------------------------------------------------------------
# Compressed files.


def _unpacked(path: Path, ending: str, folder: Path) -> tuple[Path, str]:
    """Unpack a compressed file into ``folder``; return (copy, suffix of the name inside).

    ``ending`` is the suffix of the file: ".gz", ".zst" or ".zip". Without a suffix inside, the
    first bytes of the copy decide. InvalidPredictionsError for a damaged or empty file, and for an
    archive of several files.
    """
    inner = path.stem
    copy = folder / "unpacked"
    try:
        if ending == ".gz":
            with gzip.open(path) as packed, copy.open("wb") as file:
                shutil.copyfileobj(packed, file)
        elif ending == ".zst":
            copy.write_bytes(unzst(path.read_bytes()))
        else:
            with zipfile.ZipFile(path) as packed_files:
                members = [
                    member for member in packed_files.namelist()
                    if not member.endswith("/") and "__MACOSX" not in member
                ]  # fmt: skip
                if len(members) != 1:
                    raise InvalidPredictionsError(
                        f"it holds {len(members)} files ({', '.join(members)}): unpack it and name "
                        "one of them"
                    )
                inner = members[0]
                with packed_files.open(inner) as member, copy.open("wb") as file:
                    shutil.copyfileobj(member, file)
    except InvalidPredictionsError:
        raise
    except Exception:  # whatever a damaged file makes of the decompressors
        raise InvalidPredictionsError(f"this is not a readable {ending} file") from None
    if copy.stat().st_size == 0:
        raise InvalidPredictionsError("the file is empty, without even a header")
    return copy, Path(inner).suffix.lower() or _beginning(copy)


def unzst(data: bytes) -> bytes:
    """Return the bytes of a text that Zstandard has compressed to ``data``."""
    import polars as pl

    lines = pl.read_csv(
        data, has_header=False, separator="\x1f", quote_char=None, infer_schema=False,
        new_columns=["line"], encoding="utf8",
    )  # fmt: skip
    return "\n".join(lines["line"].fill_null("").to_list()).encode()


# ------------------------------------------------------------------------------
# Text with a delimiter.


def _delimited(source: FileToOpen) -> Table:
    """Return a delimited text file as an open table, whose rows are a lazy polars frame.

    Encoding, delimiter and decimal mark are found in the first 64 kB. ``source`` has the path, the
    name in messages, and a temporary folder for a corrected copy, if one is needed.
    InvalidPredictionsError for a file that is no table.
    """
    import polars as pl

    path, title, folder, _, decimal = source
    refuse_long_lines(path)
    path, notes = _as_utf8(path, folder)
    with path.open("rb") as file:
        head = file.read(HEAD)
        whole = len(head) < HEAD
    text = head.decode("utf-8-sig", errors="ignore").lstrip("\r\n")
    if not whole:
        text = text.rpartition("\n")[0] or text
    line = text.partition("\n")[0]
    delimiter = max(",;\t|", key=line.count)
    if delimiter not in line and " " in line.strip():
        delimiter, path = " ", _single_blanks(path, folder)
        text = "\n".join(re.sub(_BLANKS, " ", row.strip()) for row in text.split("\n"))
    elif delimiter not in line:
        delimiter = ","
    limit = csv.field_size_limit(2**31 - 1)
    try:
        rows = [row for row in csv.reader(StringIO(text), delimiter=delimiter) if row]
    except csv.Error as error:
        raise InvalidPredictionsError(f"these lines cannot be parsed as CSV: {error}") from None
    finally:
        csv.field_size_limit(limit)
    header = [cell.strip() for cell in rows[0]]
    _check_header(header)
    marks = _marks_of(rows, delimiter, decimal)
    comma = marks.decimal == "," and delimiter != ","
    if len(rows) < 2:
        schema = dict.fromkeys(
            (name or f"column_{k + 1}" for k, name in enumerate(header)), pl.String
        )
        return Table(title, pl.DataFrame(schema=schema).lazy(), tuple(notes))
    names = [name or f"column_{place + 1}" for place, name in enumerate(header)]
    checked = checked_lines(path, delimiter, len(names), folder)
    notes = [*notes, *checked.notes]
    if marks.grouped:
        plain = _ungrouped(checked.path, folder, delimiter, marks)
        checked = checked._replace(path=plain)
        listed = ", ".join(names[place] for place in marks.grouped)
        notes.append(f"{listed}: {marks.thousands!r} in these numbers is the mark of thousands")
    scan: dict[str, Any] = {
        "separator": delimiter, "decimal_comma": comma, "null_values": MISSING,
        "with_column_names": lambda _: names,
    }  # fmt: skip
    typed = {**scan, "infer_schema_length": TYPED_BY, **_of_foreign_digits(checked.path, scan)}
    frame = pl.scan_csv(checked.path, **typed)
    if rows[0] == names:  # the first rows need not be looked at again
        scan["schema"] = frame.collect_schema()
        frame = pl.scan_csv(checked.path, **scan)
    typed = scan if "schema" in scan else typed
    unclear = {names[place]: mark for place, mark in marks.unclear.items()}
    return Table(title, frame, tuple(notes), checked.path, typed, unclear=unclear)


class _Marks(NamedTuple):
    """Decimal mark of a text file, and the columns whose numbers have marks of thousands.

    ``decimal`` and ``thousands`` are "." or ",", the latter "" if no column has marks of thousands.
    ``grouped`` are the indices of these columns, from 0. ``unclear`` maps indices of columns whose
    mark may be of decimals or of thousands to this mark.
    """

    decimal: str
    thousands: str
    grouped: tuple[int, ...]
    unclear: Mapping[int, UnclearMark]


def _marks_of(rows: Sequence[Sequence[str]], delimiter: str, decimal: str | None = None) -> _Marks:
    """Return the decimal mark of a file, and the columns whose numbers have marks of thousands.

    ``rows`` are the first rows as lists of cells (text), the header first; ``delimiter`` is the
    sign between cells, and ``decimal`` the decimal mark that the user named, or None. A column has
    marks of thousands if all its numbers are whole, such as 910 and 2,082, and another column has
    decimals with the other mark, or the user named it. A column in which some numbers have a mark
    before three digits, and others have none, is unclear also beside decimals with this mark, as
    decimals are seldom written so. Months such as 01.2024 are no decimals.
    InvalidPredictionsError for decimals with both marks, where commas do not separate columns.
    """
    width = max(map(len, rows))
    columns = [[row[k].strip() for row in rows[1:] if k < len(row)] for k in range(width)]
    columns = [[cell for cell in cells if cell] for cells in columns]
    grouped: dict[str, dict[int, UnclearMark]] = {",": {}, ".": {}}
    decimals: dict[str, list[str]] = {",": [], ".": []}
    for k, cells in enumerate(columns):
        for mark in ",.":
            sign = re.escape(mark)
            found = [c for c in cells if re.fullmatch(rf"-?\d+{sign}\d+\s*%?", c)]
            large = [c for c in cells if re.fullmatch(rf"[1-9]\d{{0,2}}(?:{sign}\d{{3}})+", c)]
            small = sum(bool(re.fullmatch(r"\d{1,3}", c)) for c in cells)
            if large and len(large) + small == len(cells):
                grouped[mark][k] = UnclearMark(large[0], mark, not small, False)
            elif found and not all(re.fullmatch(r"(?:0[1-9]|1[0-2])\.\d{4}", c) for c in cells):
                decimals[mark].append(found[0])
    written = delimiter != ","
    if decimal is not None:
        other = "," if decimal == "." else "."
        plain = decimals[other] and not decimals[decimal]  # beside decimals with the other mark
        return _Marks(other if plain else decimal, other, tuple(grouped[other]), {})
    if written and decimals[","] and decimals["."]:
        raise InvalidPredictionsError(
            f"numbers have decimal commas and decimal points ({decimals[','][0]}, "
            f"{decimals['.'][0]}): write all alike"
        )
    if decimals["."] and not (written and decimals[","]):
        mark, other = ".", ","
    elif written and decimals[","]:
        mark, other = ",", "."
    else:
        mark = "," if written and grouped[","] and not grouped["."] else "."
        unclear = {
            k: each._replace(decimal=each.mark == mark)
            for columns_of_mark in grouped.values()
            for k, each in columns_of_mark.items()
        }
        return _Marks(mark, "", (), unclear)
    mixed = {
        k: each._replace(decimal=True) for k, each in grouped[mark].items() if not each.everywhere
    }
    return _Marks(mark, other, tuple(grouped[other]), mixed)


def _ungrouped(path: Path, folder: Path, delimiter: str, marks: _Marks) -> Path:
    """Return the path of a copy of a text file in ``folder``, without marks of thousands.

    ``marks`` has the decimal mark, and the indices of the columns in which commas, or points if the
    decimal mark is a comma, are removed from whole numbers. ``delimiter`` is the sign between
    cells.
    """
    sign = marks.thousands
    number = re.compile(rf"\s*\d{{1,3}}(?:{re.escape(sign)}\d{{3}})+\s*")
    copy = folder / f"ungrouped-{path.name}"
    limit = csv.field_size_limit(2**31 - 1)
    try:
        with (
            path.open(encoding="utf-8-sig", newline="") as read,
            copy.open("w", encoding="utf-8", newline="") as write,
        ):
            writer = csv.writer(write, delimiter=delimiter, lineterminator="\n")
            for row in csv.reader(read, delimiter=delimiter):
                for place in (k for k in marks.grouped if k < len(row)):
                    if number.fullmatch(row[place]):
                        row[place] = row[place].replace(sign, "")
                writer.writerow(row)
    finally:
        csv.field_size_limit(limit)
    return copy


def _of_foreign_digits(path: Path, scan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument by which polars reads columns with digits of other scripts as text.

    It is ``{"schema_overrides": {column: String}}``, {} if there are no such columns; polars infers
    numbers from such digits, and then cannot read them. ``scan`` are the other keyword arguments of
    ``polars.scan_csv`` for the file.
    """
    import polars as pl

    with path.open("rb") as file:
        if all(line.isascii() for line in islice(file, TYPED_BY)):
            return {}
    head = pl.scan_csv(path, **scan, infer_schema=False).head(TYPED_BY)
    digits = pl.all().str.contains(r"^\s*[-+]?[\d.,]+([eE][-+]?\d+)?\s*$")
    found = head.select((digits & pl.all().str.contains(r"[^\x00-\x7F]")).any()).collect()
    foreign = [name for name, some in found.row(0, named=True).items() if some]
    return {"schema_overrides": dict.fromkeys(foreign, pl.String)} if foreign else {}


#: Blanks outside of quotation marks, on one line.
_BLANKS = r'\s+(?=(?:[^"]*"[^"]*")*[^"]*$)'


def _single_blanks(path: Path, folder: Path) -> Path:
    """Return the path of a copy, in ``folder``, of a text file with single blanks between columns.

    Blanks within quotation marks stay.
    """
    copy = folder / "blanks"
    with path.open(encoding="utf-8-sig") as old, copy.open("w", encoding="utf-8") as new:
        for line in old:
            new.write(re.sub(_BLANKS, " ", line.strip()) + "\n")
    return copy


def _check_header(header: Sequence[str]) -> None:
    """Raise InvalidPredictionsError for a first line of numbers, or two columns of one name."""
    numbers = all(re.fullmatch(r"-?\d*\.?\d+(e[-+]?\d+)?", cell, re.IGNORECASE) for cell in header)
    if numbers and [*header] != [str(k) for k in range(max(len(header), 3))]:
        raise InvalidPredictionsError(
            "the first line holds numbers: add a header that names the columns, such as "
            "p_0,p_1,label"
        )
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise InvalidPredictionsError(f"two columns are called {twice[0]!r}: rename one")


def _as_utf8(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """Return (file, notes): a text file in UTF-8 with line feeds, and notes on its encoding.

    The file is ``path`` itself if it is like that, else a copy in ``folder``. Text that is not
    UTF-8 is read as cp1252, with a note. InvalidPredictionsError for a NUL byte, which no text has.
    """
    with path.open("rb") as file:
        head = file.read(HEAD)
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in head and not wide:
        line = head.count(b"\n", 0, head.index(b"\0")) + 1
        raise InvalidPredictionsError(f"line {line} holds a NUL byte: this is no text file")
    if wide:
        return _copied(path, folder, "utf-16"), []
    if not _is_utf8(path):
        note = "text read as cp1252, of Windows, as it is not UTF-8: if letters are wrong, save it "
        return _copied(path, folder, "cp1252"), [note + "in UTF-8"]
    blank_first = re.match(rb"\xef\xbb\xbf[\r\n]", head)
    if blank_first or (b"\r" in head and b"\n" not in head):
        return _copied(path, folder, "utf-8-sig"), []
    return path, []


def _is_utf8(path: Path) -> bool:
    decoder = getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while block := file.read(1 << 20):
                if not block.isascii() or decoder.getstate()[0]:
                    decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _copied(path: Path, folder: Path, encoding: str) -> Path:
    copy = folder / "utf-8"
    try:
        with (
            path.open(encoding=encoding) as old,  # which turns all ends of lines into line feeds
            copy.open("w", encoding="utf-8", newline="\n") as new,
        ):
            while block := old.read(1 << 20):
                new.write(block)
    except UnicodeDecodeError:
        raise InvalidPredictionsError(
            f"this is no text in UTF-8 nor in {encoding}: save it in UTF-8"
        ) from None
    return copy


def retyped(table: Table, columns: Sequence[str]) -> Table:
    """Return a text table with the types of some columns corrected that its first rows misjudged.

    ``table`` is an open table of delimited text, which is scanned again. A column with other kinds
    of numbers later on becomes float64, and a column with text becomes text. ``columns`` are the
    names of the columns to correct.
    """
    import polars as pl

    assert table.text is not None
    schema = table.schema
    numeric = [n for n in columns if schema[n].is_numeric() or schema[n] == pl.Boolean]
    kinds = dict.fromkeys(numeric, pl.String)
    if "schema" in table.scan:
        scan = {**table.scan, "schema": {**table.scan["schema"], **kinds}}
    else:
        known = table.scan.get("schema_overrides", {})
        scan = {**table.scan, "schema_overrides": {**known, **kinds}}
    as_text = pl.scan_csv(table.text, **scan)
    words = {n: pl.col(n).str.strip_chars() for n in numeric}
    if table.scan.get("decimal_comma"):
        words = {n: word.str.replace(",", ".", literal=True) for n, word in words.items()}
    plain = {n: word.cast(pl.Float64, strict=False) for n, word in words.items()}
    lost = as_text.select(
        [(pl.col(n).is_not_null() & number.is_null()).any().alias(n) for n, number in plain.items()]
    ).collect(engine="streaming")
    numbers = [number.alias(n) for n, number in plain.items() if not lost[n][0]]
    return replace(table, frame=as_text.with_columns(numbers))


# ------------------------------------------------------------------------------
# Columns in binary form.


def _parquet(source: FileToOpen) -> Table:
    import polars as pl

    return flat(Table(source.name, pl.scan_parquet(source.path), seekable=True))


def _arrow(source: FileToOpen) -> Table:
    """Return an Arrow file, or a stream of Arrow, as an open table, a lazy polars frame.

    ``source`` has its path and name in messages. It raises the errors of polars.
    """
    import polars as pl

    with source.path.open("rb") as file:
        whole = file.read(6) == b"ARROW1"
    frame = pl.scan_ipc(source.path) if whole else pl.read_ipc_stream(source.path).lazy()
    return flat(Table(source.name, frame))


# ------------------------------------------------------------------------------
# JSON: objects a line or in a list, or lists by name; one level of nesting becomes columns.


def _json(source: FileToOpen, log: str) -> Table:
    """Return JSON, whole or one object a line, as an open table.

    The rows are a lazy polars frame. ``source`` has its path and name; ``log`` is the harness whose
    log it is said to be ("lm-eval", "inspect" or "helm"), "" for none. A log stays parsed JSON, and
    its rows are read later. InvalidPredictionsError for text that is not JSON or holds no rows.
    """
    import polars as pl

    path, name = source.path, source.name
    refuse_long_lines(path)
    if not log and path.stat().st_size > HEAD:
        with path.open("rb") as file:
            line = file.readline(HEAD).removeprefix(b"\xef\xbb\xbf").strip()
        if line.startswith(b"{") and line.endswith(b"}"):
            first = _parsed(line.decode("utf-8", "replace"))
            if not {*LOG_KEYS} & {*first} and not any(
                isinstance(v, dict | list) for v in first.values()
            ):
                try:
                    frame = pl.scan_ndjson(path, infer_schema_length=None)
                    frame.head(1).collect()
                    return Table(name, frame)
                except pl.exceptions.PolarsError:
                    pass  # read line by line, which names the error
    notes: tuple[str, ...] = ()
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidPredictionsError(
            f"this is no text in UTF-8, in byte {error.start + 1}: save it so"
        ) from None
    try:
        content = _parsed(text)
    except json.JSONDecodeError:
        lines = enumerate(text.split("\n"), start=1)
        content = [_parsed(line, number) for number, line in lines if line.strip()]
    records = content
    if isinstance(content, dict) and ({"eval", "samples"} <= {*content} or STATE in content):
        return Table(name, pl.LazyFrame(), log=log or "?", content=content)
    if isinstance(content, dict):
        columns = {k: v for k, v in content.items() if isinstance(v, list)}
        if len(columns) > 1:
            widths = {k: len(v) for k, v in columns.items()}
            if len(set(widths.values())) > 1:
                raise InvalidPredictionsError(f"lists are of different lengths: {widths}")
            return flat(Table(name, _frame_of(columns), log=log, content=content))
        records = [content]
        for label, cells in columns.items():
            if cells and all(isinstance(cell, dict) for cell in cells):
                records, notes = cells, (f"rows are the objects under {label!r}",)
    if not records or not isinstance(records, list):
        raise InvalidPredictionsError("there are no rows: a list of objects is read, one a row")
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise InvalidPredictionsError(
                f'entry {number} is not an object such as {{"probs": [0.2, 0.8], "label": 1}}'
            )
    if log or {*LOG_KEYS} & {*records[0]}:
        return Table(name, pl.LazyFrame(), notes, log=log or "?", content=content)
    heads = dict.fromkeys(head for record in records for head in record)
    columns = {head: [record.get(head) for record in records] for head in heads}
    return flat(Table(name, _frame_of(columns), notes, content=content))


#: Keys of records of logs, which are not read as tables.
LOG_KEYS = ("filtered_resps", "samples", "stats", "request_states")


#: Key of a state of HELM, which is refused with the file to read.
STATE = LOG_KEYS[-1]


def _inspect(source: FileToOpen) -> Table:
    """Return a log of Inspect, in its own archive or in JSON, as a table whose rows are read later.

    ``source`` has its path and name in messages. The table's ``content`` is the path of the
    archive, or the parsed JSON.
    """
    if zipfile.is_zipfile(source.path):
        import polars as pl

        return Table(source.name, pl.LazyFrame(), log="inspect", content=source.path)
    return _json(source, "inspect")


def _frame_of(columns: Mapping[str, list[Any]]) -> pl.LazyFrame:
    """Return lists of cells by column name as a lazy polars frame.

    Numbers of several types become float64, lists and objects JSON text, and other mixtures text.
    """
    import polars as pl

    series = []
    for name, cells in columns.items():
        try:
            column = pl.Series(name, cells, strict=True)
        except (TypeError, pl.exceptions.PolarsError, OverflowError):
            kinds = {type(cell) for cell in cells if cell is not None}
            if kinds <= {int, float, bool}:
                column = pl.Series(name, cells, dtype=pl.Float64, strict=False)
            elif any(issubclass(kind, (dict, list)) for kind in kinds):
                column = pl.Series(name, [None if c is None else json.dumps(c) for c in cells])
            else:
                column = pl.Series(name, [None if c is None else str(c) for c in cells])
        series.append(column)
    return pl.DataFrame(series).lazy()


def _parsed(text: str, line: int | None = None) -> Any:
    """Return the content of JSON text; InvalidPredictionsError if it is invalid.

    The error names the ``line`` of the file if it is given. ``JSONDecodeError`` is passed on for
    text that holds more than one value, if no ``line`` is given.
    """
    place = "" if line is None else f"line {line}: "
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        if line is None and error.msg == "Extra data":
            raise
        reason = f"line {line or error.lineno} is not JSON: {error.msg}"
    except RecursionError:
        reason = f"{place}its brackets are nested too deeply"
    except ValueError as error:  # a key that is repeated, a number of thousands of digits
        reason = place + str(error).partition(";")[0]
    raise InvalidPredictionsError(reason)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        [(repeated, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise InvalidPredictionsError(f"one object holds the key {repeated!r} twice")
    return record


# ------------------------------------------------------------------------------
# Columns that hold several values a row.


def flat(table: Table) -> Table:
    """Return a table whose structs and lists of numbers are columns of their own.

    ``table`` is an open table, a lazy polars frame with its origin. A struct ``s`` with a field
    ``f`` becomes ``s.f``; a list or array of numbers in a column called ``probs`` or the like
    becomes p0, p1, …, under other names, and of words, ``name_0``, …; lists of a word and a number,
    such as ``[{"label": "cat", "score": 0.9}, …]``, become ``p_<word>``; lists of one 1 and
    otherwise 0 in a column called ``label`` or the like become the index of the 1.
    """
    import polars as pl

    frame, notes = table.frame, [*table.notes]
    for name, kind in dict(frame.collect_schema()).items():
        if isinstance(kind, pl.Struct):
            fields = [
                pl.col(name).struct.field(f.name).alias(f"{name}.{f.name}") for f in kind.fields
            ]
            numbers = all(f.dtype.is_numeric() for f in kind.fields)
            if numbers and key(name) in NAMES_OF_ARRAYS:  # {"cat": 0.7, "dog": 0.3}
                fields = [e.alias(f"p_{f.name}") for e, f in zip(fields, kind.fields, strict=True)]
            frame = frame.with_columns(fields).drop(name)
        elif isinstance(kind, (pl.List, pl.Array)):
            inner = kind.inner
            if isinstance(inner, pl.Struct):
                frame = _of_pairs(frame, name, inner)
            elif isinstance(inner, pl.DataType) and (
                inner.is_numeric() or (inner == pl.String and key(name) not in NAMES_OF_ARRAYS)
            ):
                frame = _of_lists(frame, name)
                if name in frame.collect_schema() and not frame.collect_schema()[name].is_nested():
                    notes.append(ONE_HOT.format(name))
    return replace(table, frame=frame, notes=tuple(notes))


def _of_lists(frame: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Return a frame in which the column ``name`` of equally long lists becomes one for each place.

    The new columns are called p0, p1, …, or ``name_0``, …. Lists with one 1 and otherwise 0 in a
    column called ``label`` or the like become the index of the 1. Lists of unequal length, or of
    more than 5000 places, stay as they are.
    """
    import polars as pl

    kind = frame.collect_schema()[name]
    if isinstance(kind, pl.Array):
        frame = frame.with_columns(pl.col(name).cast(pl.List(kind.inner)))
    lengths = frame.select(pl.col(name).list.len().unique().drop_nulls().implode()).collect().item()
    sizes = lengths.to_list()
    if len(sizes) != 1 or not 0 < sizes[0] <= WIDEST:
        return frame
    if sizes[0] > 1 and key(name) in LABELS and str(kind.inner) != "String":  # type: ignore[attr-defined]
        cells = pl.col(name).list
        single = (cells.sum() == 1) & (cells.max() == 1) & (cells.min() == 0)
        if frame.select((single & (pl.col(name).is_not_null())).all()).collect().item():
            return frame.with_columns(cells.arg_max().cast(pl.Int64).alias(name))
    places = [pl.col(name).list.get(k).alias(member(name, k)) for k in range(sizes[0])]
    return frame.with_columns(places).drop(name)


def member(name: str, place: int) -> str:
    """Return the name of the column for one place of an array called ``name``: "p0" or "name_0".

    ``place`` counts from 0. The first form is for arrays called ``probs`` or the like.
    """
    return f"p{place}" if key(name) in NAMES_OF_ARRAYS else f"{name}_{place}"


def _of_pairs(frame: pl.LazyFrame, name: str, pair: pl.Struct) -> pl.LazyFrame:
    """Return a frame in which lists of (word, number) pairs become columns ``p_<word>``.

    ``name`` is the column of lists, and ``pair`` the polars type of the pairs. Other lists stay as
    they are.
    """
    import polars as pl

    words = [f.name for f in pair.fields if f.dtype == pl.String]
    numbers = [f.name for f in pair.fields if f.dtype.is_float()]
    if len(words) != 1 or len(numbers) != 1 or len(pair.fields) != 2:
        return frame
    whole = frame.collect()
    cells = [{e[words[0]]: e[numbers[0]] for e in row or []} for row in whole[name].to_list()]
    classes = sorted(cells[0]) if cells else []
    if not classes or any(sorted(row) != classes for row in cells):
        return frame
    columns = [pl.Series(f"p_{c}", [row[c] for row in cells]) for c in classes]
    return whole.with_columns(columns).drop(name).lazy()


def of_arrays(arrays: Mapping[str, AnyArray]) -> pl.DataFrame:
    """Return arrays by name as a polars frame; a matrix gives a column for each of its own.

    Arrays are (n,) or (n, d). A one-hot matrix called ``label`` or the like gives one column of
    class indices. InvalidPredictionsError for arrays of different lengths, and for a matrix with
    more than 5000 columns.
    """
    import polars as pl

    columns: dict[str, AnyArray] = {}
    for name, array in arrays.items():
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 2:
            if array.shape[1] > WIDEST:
                raise InvalidPredictionsError(
                    f"{name} has {array.shape[1]} columns: at most {WIDEST} are read"
                )
            if _is_one_hot(name, array):
                columns[name] = array.argmax(axis=1)
            else:
                columns |= {member(name, k): array[:, k] for k in range(array.shape[1])}
        else:
            columns[name] = array
    lengths = {name: len(array) for name, array in columns.items()}
    if len({*lengths.values()}) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InvalidPredictionsError(f"columns are not of one length: {listed}")
    return pl.DataFrame([_series(name, array) for name, array in columns.items()])


#: Note on labels with one column a class.
ONE_HOT = "{} has a single 1 in every row and otherwise 0, and is read as the number of its column"


def _is_one_hot(name: str, array: AnyArray) -> bool:
    """Return whether an array called ``label`` or the like is one-hot: (n, K), one 1 in each row.

    ``name`` is its name; all other cells have to be 0, and K at least 2.
    """
    if key(name) not in LABELS or array.ndim != 2 or array.shape[1] < 2 or not len(array):
        return False
    if array.dtype.kind not in "biuf":
        return False
    one = array == 1
    return bool((one | (array == 0)).all() and (one.sum(axis=1) == 1).all())


def _series(name: str, array: AnyArray) -> pl.Series:
    import polars as pl

    if array.dtype == object:  # with None for what is missing
        return pl.Series(name, array.tolist(), strict=False)
    return pl.Series(name, np.ascontiguousarray(array))


def _numpy(source: FileToOpen) -> Table:
    arrays, others = _arrays(source.path)
    notes = [ONE_HOT.format(n) for n, array in arrays.items() if _is_one_hot(n, array)]
    left_out = ""
    if others:
        n = len(next(iter(arrays.values())))
        shapes = (f"{name} ({' × '.join(map(str, a.shape))})" for name, a in others.items())
        left_out = f"left out {', '.join(shapes)}: not a value or row for each of {n} observations"
        notes.append(left_out)
    return Table(source.name, of_arrays(arrays).lazy(), tuple(notes), left_out=left_out)


def _arrays(path: Path) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
    """Return (columns, others): the arrays of a NumPy file by name that are of one length, and not.

    The length is shared by most arrays whose names are read without an option, or of most arrays.
    Arrays of three dimensions are others, and single numbers are left out. The array of an ``.npy``
    file is called "probs". InvalidPredictionsError for a file that cannot be read, or would have to
    be unpickled.
    """
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                arrays = {"probs": stored}
            else:
                with stored:
                    arrays = {name: np.asarray(stored[name]) for name in stored.files}
    except ValueError as error:
        pickled = "pickle" in str(error) or "Object" in str(error)
        reason = "it holds Python objects, which are not unpickled" if pickled else str(error)
        raise InvalidPredictionsError(f"this is not a readable NumPy file: {reason}") from None
    except Exception:  # whatever a damaged file makes of its reader
        raise InvalidPredictionsError("this is not a readable NumPy file") from None
    rows = {name: array for name, array in arrays.items() if array.ndim in (1, 2)}
    if not rows:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidPredictionsError(f"there are no rows in its arrays: {shapes}")
    lengths = Counter(len(array) for array in rows.values())
    known = NAMES_OF_ARRAYS | LABELS | PROBABILITIES
    named = Counter(len(array) for name, array in rows.items() if key(name) in known)
    n = max(lengths, key=lambda length: (named[length], lengths[length], length))
    kept = {name: array for name, array in rows.items() if len(array) == n}
    if not any(array.ndim == 2 or key(name) in NAMES_OF_ARRAYS for name, array in kept.items()):
        for name, array in rows.items():
            if array.ndim == 2 and array.shape[1] == n:
                raise InvalidPredictionsError(
                    f"{name} has {len(array)} rows of {n} numbers, and {', '.join(kept)} "
                    f"{several(n, 'value')}: a row of {name} is for one observation, so store the "
                    f"transpose, {name}.T"
                )
    others = {name: a for name, a in arrays.items() if a.ndim and name not in kept}
    return kept, others


# ------------------------------------------------------------------------------
# Excel.


def _excel(source: FileToOpen) -> Table:
    """Return the sheet of an Excel file as an open table, a lazy polars frame.

    If none is named, it is the only sheet that holds a table. ``source`` has the path, the name in
    messages and the sheet or None. InvalidPredictionsError if there is no such sheet, or several
    hold tables and none is named; ImportError without the package that reads Excel files.
    """
    import polars as pl

    path, name, _, sheet, _ = source
    imported("fastexcel", "excel", "Excel files")
    try:
        raw = pl.read_excel(
            path, sheet_id=0, has_header=False, raise_if_empty=False, infer_schema_length=0
        )
    except Exception as error:  # whatever a damaged file makes of its reader
        reason = str(error).partition("\n")[0]
        raise InvalidPredictionsError(f"this is not a readable Excel file: {reason}") from None
    if sheet is not None and sheet not in raw:
        raise InvalidPredictionsError(
            f"there is no sheet {sheet!r}: there are {', '.join(raw)}",
            [Reading({"sheet": other}, f"{other} is meant") for other in raw],
        )
    tables = {title: _below_titles(cells) for title, cells in raw.items()}
    filled = [title for title, frame in tables.items() if frame.width > 1 and frame.height]
    if sheet is None and len(filled) != 1:
        raise InvalidPredictionsError(
            f"it has the sheets {', '.join(raw)}: name one",
            [Reading({"sheet": title}, f"{title} is meant") for title in filled],
        )
    return Table(name, tables[sheet or filled[0]].lazy())


def _below_titles(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the table below the title lines of a sheet, with the types of its columns inferred.

    ``cells`` is the whole sheet, as text and without a header. Title lines have fewer than two
    cells; the first line below names the columns. The frame is empty if there is no row below them.
    """
    import polars as pl

    rows = [row for row in cells.rows() if any(cell is not None for cell in row)]
    while len(rows) > 1 and sum(cell is not None for cell in rows[0]) < 2:
        rows = rows[1:]
    if len(rows) < 2:
        return pl.DataFrame()
    header = [str(cell or "").strip() for cell in rows[0]]
    _check_header(header)
    names = [name or f"column_{place + 1}" for place, name in enumerate(header)]
    text = pl.DataFrame(rows[1:], schema=names, orient="row", infer_schema_length=None)
    return pl.read_csv(
        BytesIO(text.write_csv().encode()), null_values=MISSING, infer_schema_length=None
    )


def imported(module: str, extra: str, what: str) -> Any:  # of libraries without types
    """Import and return the optional library ``module``.

    ImportError names the ``extra`` that installs it, and ``what``, the kind of file that needs it.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ImportError:
        needed = f"reading {what} needs {package}: pip install 'caltest[{extra}]'"
        raise ImportError(needed) from None


# ------------------------------------------------------------------------------
# Widths of the lines of text with a delimiter: of a file before it is parsed, of a stream while
# it is read. The error names the line and its number of fields.


#: Bytes that are looked at together.
BYTES_A_BLOCK = 1 << 18


#: Longest line in bytes; a longer one would take several times its size in memory.
LONGEST_LINE = 1 << 28


def refuse_long_lines(path: Path) -> None:
    """Raise InvalidPredictionsError for a file with a line of more than 256 MB.

    Files of up to this size are not read. O(bytes).
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
    """File whose lines all have as many cells as the header, and notes on lines left out.

    ``path`` is the file itself, or its copy without empty lines; ``notes`` is a sentence on their
    number, () if there were none.
    """

    path: Path
    notes: tuple[str, ...] = ()


def checked_lines(path: Path, delimiter: str, width: int, folder: Path) -> CheckedLines:
    """Check that all lines have ``width`` cells; return the file, or a copy without empty lines.

    ``delimiter`` is the sign between cells, and ``folder`` takes the copy, which is made only if
    there are empty lines; a note says how many. The signs that end a cell or a line are periodic
    where all lines are alike, which is checked in blocks of 256 kB; only a block that differs, or
    that holds quotation marks, is counted line by line. O(bytes), one pass; memory is one block, or
    the longest text in quotation marks.

    InvalidPredictionsError for a line that is longer or shorter than the header, with its number,
    and for a quotation mark that is not closed.
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
    """Return the end of the last complete line outside quotation marks, as an index into ``data``.

    It is the index after the line feed; 0 if there is no such line.
    """
    cells = np.frombuffer(data, np.uint8)
    inside = np.bitwise_xor.accumulate(cells == ord('"'))
    ends = np.flatnonzero((cells == 10) & ~inside)
    return int(ends[-1]) + 1 if ends.size else 0


def _check(data: bytes, sign: int, width: int, first: int, empty: list[int]) -> int:
    """Check the widths of whole lines of text with a delimiter; return the number of line feeds.

    ``data`` are the lines, as bytes. ``sign`` is the byte between cells, ``width`` the number of
    cells of a line, ``first`` the number of the first line in the file. Numbers of empty lines are
    appended to ``empty``. InvalidPredictionsError for a line of another width.
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
    """Return bytes (n,) with 0 in place of the bytes within quotation marks.

    ``cells`` (n,) are the bytes as uint8.
    """
    return np.where(np.bitwise_xor.accumulate(cells == ord('"')), np.uint8(0), cells)
