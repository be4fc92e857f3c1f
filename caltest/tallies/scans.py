"""Files of any size tallied in one pass, and the query that tallies rows in a database.

:func:`scan` reads files batch by batch and part by part; :func:`tally_sql` writes the query.

With ``resume=`` a state file keeps the tally of finished parts, and a later run reads new parts
only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from caltest._base.arrays import one_of, progress, whole
from caltest._base.saving import (
    FileStamp,
    content_mark,
    locked,
    next_name,
    parse_json,
    sealed,
    unsealed,
    write_file,
)
from caltest._base.written import several
from caltest.data.binning import EDGE_TOLERANCE
from caltest.data.lenses import Lens
from caltest.errors import InvalidPredictionsError, Reading, StatisticError, spelt
from caltest.read.contract import Wanted
from caltest.read.files import parts_of, refuse_copies, shortened
from caltest.read.tables import n_rows_of
from caltest.tallies.grid import (
    CELL_SUMS,
    CLUSTER_CELLS,
    FINE,
    GRID_CELLS,
    HIGH,
    LOGIT_CLIP,
    LOGIT_CUT,
    LOW,
    OCTAVES,
    POSITIONS,
    SQL_COLUMNS,
    TOTALS,
    Grid,
)
from caltest.tallies.tally import (
    LOOKS,
    MaybeTally,
    Tallies,
    Tally,
    TallyReading,
    joined,
    naming_errors,
)

#: Which commands look so.
COMMANDS_OF_LOOKS = {
    LOOKS[None]: "caltest audit or report",
    LOOKS["usual"]: "caltest test or interval without --lens",
}


#: The version of the stored form of a scan.
SCAN_VERSION = 6


#: Seconds after which what has been counted is written again.
WRITTEN_AFTER = 10.0


def scan(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    probs: str | Sequence[str] | None = None,
    label: str | Sequence[str] | None = None,
    *,
    lens: Lens | Sequence[Lens] | Literal["usual"] | None = None,
    grid: int | None = None,
    resume: str | PathLike[str] | None = None,
    verify: bool = False,
    where: str | None = None,
    predicted_label: str | None = None,
    weights: str | None = None,
    classes: Sequence[object] | None = None,
    from_logits: bool = False,
    renormalise: bool = False,
    drop_missing: bool = False,
    format: str | None = None,
    decimal: Literal[".", ","] | None = None,
    as_is: bool = False,
) -> Tally | Tallies:
    r"""Tally files that need not fit into memory.

    Parquet, Arrow and text files are read in batches, every other format whole, one file at a time,
    as :func:`read_predictions` does. Numbers do not depend on batches, nor on the order of the
    files.

    Parameters
    ----------
    paths : path, pattern such as ``"part-*.parquet"``, or sequence of them
        The parts. Patterns take files in the order of their names.
    probs, label, where, predicted_label, weights, classes
        As in :func:`read_predictions`; the first part decides which columns are read.
    from_logits, renormalise, drop_missing, format, decimal, as_is
        As in :func:`read_predictions`. The questions of predictions and outcomes, and of rows that
        a model was fitted to, are asked of all rows; questions about other columns of the first 32
        768 rows of the first part, as a note says.
    lens : Lens, sequence of them or "usual", optional
        Which probabilities are assessed; by default all lenses of :func:`audit`, with ``"usual"``
        the lens of :func:`calibration_test`.
    grid : int, optional
        As in :meth:`Tallies.of`.
    resume : path, optional
        A file that keeps the tally of whole parts; parts that it has counted are not read again.
        A part counts as unchanged if its size, modification time (in ns), inode and device are, and
        otherwise if the BLAKE2 hash of its whole content is.
    verify : bool, default False
        Compare the content of every counted part, even if its metadata is unchanged.

    Returns
    -------
    Tally or Tallies
        Tallies for several lenses, or for more than two classes without a lens. Notes say how the
        files were read.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidPredictionsError
        When a part cannot be read; the message names it and the parts counted before. A
        KeyboardInterrupt on Ctrl-C says the same.
    StatisticError
        When ``resume`` belongs to another question, or one of its parts has changed, even while it
        was being read.

    Notes
    -----
    One pass, some 0.15 µs a row. Numbers of 32 bits within half a step of a decimal of 6 digits are
    read as that decimal, numbers of 16 bits within half a step of 3 digits, row by row.

    Examples
    --------
    >>> import caltest as ct, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for day in ("monday", "tuesday"):
    ...     _ = (folder / f"{day}.csv").write_text("p,y\n0.8,1\n0.3,0\n")
    >>> ct.scan(folder / "*.csv").n
    4
    """
    wanted = Wanted(
        probs, label, predicted_label, weights=weights, where=where, classes=classes,
        from_logits=from_logits, renormalise=renormalise, drop_missing=drop_missing,
        format=format, decimal=decimal, as_is=as_is,
    )  # fmt: skip
    reading = TallyReading(wanted, lens, grid)
    if verify and resume is None:
        raise StatisticError("verify=True compares files with a state: name it with resume=")
    parts = parts_of(paths)
    refuse_copies(parts)
    state = None if resume is None else Path(resume)
    run = _Run(parts, reading, reading.question, state, verify)
    if run.state is None:
        return run.tally_parts()
    with locked(run.state):
        run.load_state()
        return run.tally_parts()


@dataclass
class _Run:
    """State of a scan: its files, the hashes of files already counted, and the tally so far.

    ``parts`` are the files, ``reading`` turns them into tallies, ``question`` has the text of each
    option that a resumed scan must share, ``state`` is where the state is saved (None for nowhere),
    ``verify`` says whether files that look unchanged are hashed all the same. ``counted`` is
    (records of the counted files by hash, their tally or None); ``marks`` has the hashes of files
    that had to be known before they are read; ``write_time`` is when the state was saved last.
    """

    parts: list[Path]
    reading: TallyReading
    #: The question as it was put, before the first part has said more.
    question: dict[str, str]
    state: Path | None
    verify: bool
    #: Replaced as a whole, so that Ctrl-C never finds one without the other.
    counted: tuple[dict[str, Any], MaybeTally] = field(default_factory=lambda: ({}, None))
    #: Marks of the parts that had to be known before they are read.
    marks: dict[Path, str] = field(default_factory=dict)
    write_time: float = field(default_factory=time.monotonic)

    def tally_parts(self) -> Tally | Tallies:
        """Tally the files that are not counted yet, and return the tally of all, with notes.

        Ctrl-C raises KeyboardInterrupt with the rows counted so far, which are saved in the state.
        InvalidPredictionsError if no file has rows.
        """
        self.reading.choose(self.parts)
        left = [part for part in self.parts if self.marks.get(part) not in self.counted[0]]
        for part in (part for part in self.parts if part not in left):
            self.reading.seen(part)
        try:
            with progress(n_rows_of(left), "rows") as advance:
                for part in left:
                    self._count(part, advance)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self.account()) from None
        finally:
            self._write()
        names, tally = self.counted
        if tally is None:
            raise InvalidPredictionsError(f"{self.parts[0].name}: there are no rows, nor in others")
        chosen = self.reading.chosen
        assert chosen is not None
        doubts = self.reading.asked_of_all(tally)
        wanted = [t.name for o in ("probs", "label") for t in chosen.terms[o]]
        note = f"read {several(tally.n, 'row')} of {several(len(names), 'file')}"
        note += f", columns {shortened(wanted)}"
        return replace(tally, notes=(note, *doubts, *self.reading.notes))

    def _count(self, part: Path, advance: Callable[[int], None]) -> None:
        tally, before = None, part.stat()
        stamp = FileStamp.of(part)
        mark = str(part) if self.state is None else self.marks.get(part) or content_mark(part)
        with naming_errors(part, self.account):
            for batch, rows in self.reading.steps(part):
                tally = joined(tally, batch)
                if isinstance(tally, Tallies) and tally.sample is not None:
                    self.reading.bound = min(self.reading.bound, tally.sample.bound)
                advance(rows)
            after = part.stat()
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise StatisticError("the file has changed while it was read: read it again")
            names, counts = self.counted
            record = {"name": str(part), **stamp.as_dict()}
            self.counted = {**names, mark: record}, joined(counts, tally)
        if time.monotonic() - self.write_time > WRITTEN_AFTER:
            self._write()

    def account(self) -> str:
        """Return a sentence on the rows and files counted so far and where they are kept."""
        names, tally = self.counted
        n = several(0 if tally is None else tally.n, "row")
        kept = "with resume= (--resume) a file keeps it"
        place = f"kept in {self.state}" if self.state else spelt(kept)
        return f"Counted before: {n} of {len(names)} of {several(len(self.parts), 'part')}; {place}"

    def _write(self) -> None:
        if self.state is not None:
            names, tally = self.counted
            content = {"caltest scan": SCAN_VERSION, "question": self.question, "parts": names}
            content["tally"] = None if tally is None else tally.to_json()
            write_file(self.state, sealed(content))
        self.write_time = time.monotonic()

    def load_state(self) -> None:
        """Load the counts of an earlier run with the same question and parts into this one.

        Without a state file nothing is loaded. StatisticError if a part has changed since, if the
        state has counted other parts, or if it was written for other options.
        InvalidPredictionsError for a file that is no such state.
        """
        assert self.state is not None
        if not self.state.exists():
            return
        names, question, tally = _stored(self.state)
        self._identify(names)
        remedy = "or start without the state"
        for mark, record in names.items():
            if mark in self.marks.values():
                continue
            name = record["name"]
            if Path(name) in self.parts:
                raise StatisticError(
                    f"{name} has changed since it was counted in {self.state}: restore it, "
                    f"{remedy}",
                    [Reading({"resume": None})],
                )
            raise StatisticError(
                f"{self.state} has counted {name}, which is not among the parts: name all of "
                f"them, {remedy}",
                [Reading({"resume": None})],
            )
        for name, now in self.question.items():
            if question.get(name) != now:
                before = question.get(name, "nothing")
                by = (
                    f"; {COMMANDS_OF_LOOKS[before]} wrote it and can go on"
                    if before in COMMANDS_OF_LOOKS
                    else ""
                )
                raise StatisticError(
                    f"{self.state} was written with {name}={before}, not {now}: give the same, or "
                    f"count anew into another file (resume=){by}",
                    [Reading({"resume": str(next_name(self.state))})],
                )
        self.counted = names, tally

    def _identify(self, names: dict[str, Any]) -> None:
        """Hash the files that may have been counted by an earlier run; others are hashed when read.

        ``names`` are the records of counted files by hash: dicts of name, size and times. Hashes
        are kept in the field ``marks`` of this run.
        """
        stamps = {mark: _stamp_in(record) for mark, record in names.items()}
        sizes = {stamp.size for stamp in stamps.values()}
        for part in self.parts:
            now = FileStamp.of(part)
            same = [] if self.verify else [m for m, old in stamps.items() if now.trusts(old)]
            if same:
                self.marks[part] = same[0]
            elif now.size in sizes:
                self.marks[part] = content_mark(part)


def _stored(state: Path) -> tuple[dict[str, Any], dict[str, str], MaybeTally]:
    """Return (records of files by hash, question, tally) from the file ``state``.

    A record is a dict of name, size and times. The question is the text of each option by name; the
    tally is None if nothing was counted. InvalidPredictionsError for a file that is no such state.
    """
    foreign = (
        f"{state} is not the state of a scan, as audit, report, test and interval write it with "
        "--resume"
    )
    other = [Reading({"resume": str(next_name(state))})]
    try:
        content = parse_json(state.read_bytes(), str(state))
    except InvalidPredictionsError:
        raise InvalidPredictionsError(foreign, other) from None
    if not isinstance(content, dict) or "caltest scan" not in content:
        raise InvalidPredictionsError(foreign, other)
    if content["caltest scan"] != SCAN_VERSION:
        raise InvalidPredictionsError(
            f"{state} has the form {content['caltest scan']} of a state, known is {SCAN_VERSION}: "
            "count anew into another file (resume=)",
            other,
        )
    content = unsealed(content, str(state))
    try:
        names, text, tally = dict(content["parts"]), content["tally"], None
        if text is not None:
            several_lenses = text.startswith('{"caltest tallies"')
            tally = (Tallies if several_lenses else Tally).from_json(text)
        for record in names.values():
            _stamp_in(record)
        return names, dict(content["question"]), tally
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidPredictionsError(f"{state} is damaged: {error}", other) from None


def _stamp_in(record: dict[str, Any]) -> FileStamp:
    return FileStamp(**{name: value for name, value in record.items() if name != "name"})


# ------------------------------------------------------------------------------
# The SQL query whose result is a tally; :class:`caltest.tallies.grid.Counted` reads it.


#: Adding and subtracting it rounds to whole numbers, ties to even, in every IEEE arithmetic.
_R = "6755399441055744e0"


#: What ``add_up`` computes, of p, y, the weight w and the size g: steps, each from those before.
_STEPS = f"""
refused: CASE WHEN p IS NULL THEN -1 WHEN NOT (p >= 0 AND p <= 1) THEN -2
    WHEN y IS NULL OR NOT (y = 0 OR y = 1) THEN -3
    WHEN w IS NULL OR NOT (w >= 0 AND w <= 1.7976931348623157e308) THEN -4 ELSE 0 END

q: CASE WHEN refused < 0 THEN 0.5e0 ELSE p END

rest: 1e0 - q
upper: q > 0.5e0

x: CASE WHEN upper THEN rest ELSE q END
a: LN(CASE WHEN q = 0 OR q = 1 THEN 1e0 ELSE q END)
b: LN(CASE WHEN q = 0 OR q = 1 THEN 1e0 ELSE rest END)

place: x * g
z: a - b
v: q * rest
r: CASE WHEN y = 1 THEN rest ELSE -q END

j: place + {_R} - {_R}
near: GREATEST(place, {2.0**-OCTAVES!r})
cut: CASE WHEN x >= {LOGIT_CLIP!r} THEN z WHEN upper THEN {-LOGIT_CUT!r} ELSE {LOGIT_CUT!r} END

off: x - j / g
e: FLOOR(LN(near) / LN(2e0))

edge: j > 0 AND ABS(off) <= {EDGE_TOLERANCE!r}
octave: GREATEST(1e0, {OCTAVES + 1} + e + CASE WHEN near >= POWER(2e0, e + 1) THEN 1
    WHEN near < POWER(2e0, e) THEN -1 ELSE 0 END)

own: CASE WHEN x = 0 THEN 0 WHEN edge THEN {OCTAVES - 1} + 2 * j
    WHEN place < 1 THEN octave ELSE {OCTAVES} + 2 * FLOOR(place) END
t0: CASE WHEN x = 0 THEN 0 WHEN edge THEN off * {1.0 / EDGE_TOLERANCE!r}
    WHEN place >= 1 THEN 2 * (place - FLOOR(place)) - 1
    WHEN octave = 1 THEN place * {2.0**OCTAVES!r} - 1
    ELSE 4 * (place / POWER(2e0, octave - {OCTAVES})) - 3 END

key: CAST(CASE WHEN refused < 0 THEN refused
    WHEN upper THEN 2 * g + {2 * OCTAVES - 2} - own ELSE own END AS BIGINT)
u: CASE WHEN upper THEN -t0 ELSE t0 END

whole: u * {POSITIONS!r} + {_R} - {_R}

t: whole / {POSITIONS!r}
yt: y * whole
t1_rest: (u - whole / {POSITIONS!r}) * {FINE!r} + {_R} - {_R}

t2: t * t * {POSITIONS!r} + {_R} - {_R}
t3: t * t * t * {POSITIONS!r} + {_R} - {_R}
t4: (t * t) * (t * t) * {POSITIONS!r} + {_R} - {_R}
cut_rz: r * cut
cut_vz_low: CASE WHEN upper THEN 0 ELSE v * cut END
cut_vz_high: CASE WHEN upper THEN v * cut ELSE 0 END
cut_vzz: v * cut * cut
rz: r * z
vzz: v * z * z
log_score: CASE WHEN y = 1 THEN -a ELSE -b END
entropy: -q * a - rest * b
"""


#: What differs: numbers out of a column, whether it holds 32 bits, the end of a step, and the
#: quotient of whole numbers.
_DIALECTS = {
    "duckdb": {
        "number": "TRY_CAST({0} AS DOUBLE)",
        "label": "TRY_CAST({0} AS DOUBLE)",
        "single": "typeof({0}) = 'FLOAT'",
        "fence": "",
        "quotient": "({0}) // {1}",
    },
    "postgresql": {
        "number": "CAST({0} AS DOUBLE PRECISION)",
        "label": "CAST(CASE CAST({0} AS TEXT) WHEN 'true' THEN '1' WHEN 'false' THEN '0' "
        "ELSE CAST({0} AS TEXT) END AS DOUBLE PRECISION)",
        "single": "pg_typeof({0}) = 'real'::regtype",
        "fence": " OFFSET 0",  # a step is computed once, not pasted into the next one
        "quotient": "div({0}, {1})",
    },
}


def tally_sql(
    table: str | Sequence[str],
    probs: str,
    label: str,
    *,
    weights: str | None = None,
    cluster: str | None = None,
    grid: int | None = None,
    dialect: str = "duckdb",
) -> str:
    """Return the query that tallies a table where it is; :meth:`Tally.from_table` reads its result.

    A GROUP BY over micro-cells: a row for each occupied cell (of each weight) with the sums of
    :class:`Tally`, equal to the sums of :meth:`Tally.of` to the last bit, and its part of the
    totals, where logarithms may differ in their last bits (below 1e-9 of a total, unless it
    cancels). All are whole numbers, so that the order of rows and the number of threads change
    nothing.

    Parameters
    ----------
    table : str or sequence of str
        The name of a table, view or (DuckDB) file; ``("schema", "table")`` for a qualified one.
    probs, label : str
        Columns: the probability of an event, and whether it occurred (0, 1 or boolean). Names are
        quoted as they stand, so that upper and lower case matter in PostgreSQL.
    weights, cluster : str, optional
        Column of weights ≥ 0, up to 1024 different ones; rows of weight 0 are left out. Or column
        of clusters, such as images; :meth:`ClusteredTally.from_table` reads that result.
    grid : int, optional
        Cells of equal width: 4800 as in :meth:`Tally.of`, with ``cluster`` 120.
    dialect : {"duckdb", "postgresql"}
        Both round as IEEE 754 says. DuckDB is tested with every change, PostgreSQL (15) where a
        server is at hand.

    Returns
    -------
    str

    Raises
    ------
    StatisticError
        For an empty name, another dialect, or a grid out of range.

    Notes
    -----
    One pass over the table. Rows that cannot be tallied are counted under the keys −1 to −4, and
    ``from_table`` refuses them by their number. Numbers of 32 bits that are the nearest to a
    decimal of six digits are read as that decimal, as :func:`scan` does; 0.1 + 0.2 is not read as
    0.3, as it is by :meth:`Tally.of` where all values are decimals.

    Examples
    --------
    >>> query = tally_sql(("risk", "loans"), "pd", "default")
    >>> "GROUP BY" in query, '"risk"."loans"' in query
    (True, True)
    """
    one_of("dialect", dialect, tuple(_DIALECTS))
    word = _DIALECTS[dialect]
    parts = table if table and not isinstance(table, str) else [table]
    origin = ".".join(quoted(part) for part in parts)
    p, number = quoted(probs), word["number"].format(quoted(probs))
    if cluster is not None:
        if weights is not None:
            raise StatisticError("a tally of clusters keeps no weights: leave out weights")
        y = word["label"].format(quoted(label))
        whole("grid", cells := CLUSTER_CELLS if grid is None else grid)
        return _of_clusters(origin, number, y, quoted(cluster), cells)
    size = Grid(GRID_CELLS if grid is None else grid).size
    decimal = f"(({number} * 1e6 + {_R} - {_R}) / 1e6)"
    first = {
        "p": f"CASE WHEN {word['single'].format(p)} THEN CASE WHEN CAST({decimal} AS REAL) = {p}\n"
        f"  THEN {decimal} ELSE {number} END ELSE {number} END",
        "y": word["label"].format(quoted(label)),
        "w": word["number"].format("1" if weights is None else quoted(weights)),
        "g": word["number"].format(size),
    }
    query = f"SELECT {', '.join(f'{v} AS {k}' for k, v in first.items())}\nFROM {origin}"
    for step in _STEPS.strip().split("\n\n"):
        columns = step.replace("\n  ", " ").splitlines()
        named = (column.partition(": ")[::2] for column in columns)
        listed = ",\n".join(f"{value} AS {name}" for name, value in named)
        query = f"SELECT *,\n{listed}\nFROM ({query}{word['fence']}) AS s"
    grouping = "WHERE key < 0 OR w > 0\nGROUP BY 2, 3"
    return f"SELECT {_result(word)}\nFROM ({query}{word['fence']}) AS s\n{grouping}"


def _of_clusters(origin: str, p: str, y: str, cluster: str, cells: int) -> str:
    """Return the SQL query of a tally of clusters, a row for each cluster and cell.

    ``origin`` is the table, ``p``, ``y`` and ``cluster`` are SQL expressions, ``cells`` the number
    of cells of equal width. Columns are cluster, cell, n, p, p2, y and yp: numbers and sums of
    rows. Invalid rows are counted in cell −1.
    """
    rows = f"SELECT {cluster} AS cluster, {p} AS p, {y} AS y FROM {origin}"
    cell = f"GREATEST(CEIL((p - {EDGE_TOLERANCE!r}) * {cells}) - 1, 0)"
    right = "p >= 0 AND p <= 1 AND (y = 0 OR y = 1) AND cluster IS NOT NULL"
    numbered = f"SELECT *, CAST(CASE WHEN {right} THEN {cell} ELSE -1 END AS INTEGER) AS cell"
    sums = {"n": "COUNT(*)", "p": "SUM(p)", "p2": "SUM(p * p)", "y": "SUM(y)", "yp": "SUM(y * p)"}
    listed = ", ".join(f"{value} AS {name}" for name, value in sums.items())
    return (
        f"SELECT cluster, cell, {listed}\nFROM ({numbered}\nFROM ({rows}) AS r) AS s\n"
        "GROUP BY cluster, cell"
    )


def quoted(name: object) -> str:
    """Return a name as an SQL identifier in double quotes, with inner quotes doubled.

    StatisticError for an empty name, one with a NUL, or an object that is no string.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise StatisticError(f"{name!r} is not the name of a table or column")
    return '"' + name.replace('"', '""') + '"'


def _result(word: Mapping[str, str]) -> str:
    """Return the SELECT list of the query, SQL expressions of the key, weight and sums of a tally.

    ``word`` maps names such as "quotient" to the SQL of the dialect, with places for the operands.
    """

    def sum_of(value: str) -> str:
        return f"SUM(CAST(CASE WHEN refused < 0 THEN 0 ELSE {value} END AS BIGINT))"

    weight = "CASE WHEN refused < 0 THEN 0e0 ELSE w END"
    shown = {"grid": "CAST(MIN(g) AS INTEGER)", "weight": weight, "key": "key", "n": "COUNT(*)"}
    for name in CELL_SUMS[1:]:
        column = {"t1": "whole", "events": "y", "events_t": "yt"}.get(name, name)
        shown[name] = f"CAST({sum_of(column)} AS BIGINT)"
    for name in TOTALS:
        value, carry = f"({name} * {HIGH!r})", f"{2**LOW}"
        high, low = (
            sum_of(f"FLOOR{value}"),
            sum_of(f"FLOOR(({value} - FLOOR{value}) * {2.0**LOW!r})"),
        )
        shown[name] = f"CAST({high} + {word['quotient'].format(low, carry)} AS BIGINT)"
        shown[f"{name}_rest"] = f"CAST(MOD({low}, {carry}) AS BIGINT)"
    return ",\n".join(f"{shown[name]} AS {name}" for name in SQL_COLUMNS)
