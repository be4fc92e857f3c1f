"""The SQL query whose result is a tally, and tallies of tables of counts (grades, bins).

:func:`tally_sql` writes the query; :class:`Counted` reads its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from caltest._base import IntArray
from caltest._base.arrays import AnyArray, one_of, whole
from caltest._base.written import several
from caltest.data.binning import EDGE_TOLERANCE
from caltest.data.labels import class_names
from caltest.data.lenses import OneVsRest
from caltest.data.numbers import as_numbers
from caltest.errors import InvalidPredictionsError, StatisticError, nth
from caltest.read.grade_tables import (
    Grades,
    count_table,
    read_columns,
    read_grades,
    whole_numbers,
)
from caltest.tallies.grid import (
    CELL_SUMS,
    FINE,
    GRID_CELLS,
    HIGH,
    LOGIT_CLIP,
    LOGIT_CUT,
    LOW,
    MOST_WEIGHTS,
    OCTAVES,
    POSITIONS,
    ROWS_A_TALLY,
    ROWS_AT_ONCE,
    TOTALS,
    Grid,
    carried,
)

#: What rows are counted under in place of a cell, and why they cannot be tallied.
REFUSED = {
    -1: "without a probability",
    -2: "with a probability outside [0, 1]",
    -3: "with an outcome that is not 0 or 1",
    -4: "without a weight ≥ 0",
}


#: The columns of the result: whole numbers but for the weight.
SQL_COLUMNS = ("grid", "weight", "key", *CELL_SUMS, *TOTALS, *(f"{name}_rest" for name in TOTALS))


#: Cells of a tally of clusters: bins of 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30 and 40 fit.
CLUSTER_CELLS = 120


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
    """Return the query of a tally of clusters; invalid rows are counted in cell −1.

    ``origin`` is the table, ``p``, ``y`` and ``cluster`` are SQL expressions, ``cells`` the number
    of cells of equal width.
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
    """Return a name as an SQL identifier in double quotes, with inner quotes doubled."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise StatisticError(f"{name!r} is not the name of a table or column")
    return '"' + name.replace('"', '""') + '"'


def _result(word: Mapping[str, str]) -> str:
    """Return the SELECT list of the query, the sums of a tally.

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


# ------------------------------------------------------------------------------
# Tallies of tables of counts: micro-cell sums of a warehouse, and grades or bins.


#: What the two classes are called, if anything.
Names = tuple[str, ...] | None


class Counted:
    """Mixin of tallies that can be built from tables of counts, such as grades or query results."""

    @classmethod
    def from_table(
        cls, table: object, *, n: str | None = None, events: str | None = None,
        probability: str | None = None, classes: Sequence[object] | None = None,
        grid: int | None = None,
    ) -> Self:  # fmt: skip
        """Tally a table of counts: the result of :func:`tally_sql`, or grades or bins.

        Parameters
        ----------
        table : data frame, mapping of columns, duckdb relation or path
            The result of a query of :func:`tally_sql`; the results of several days may be
            concatenated. Or a row for each grade, which stands for its ``n`` rows with one
            prediction.
        n, events, probability : str, optional
            Columns of grades or expressions over them, as in :func:`grade_tests`.
        classes : sequence of two, optional
            Names of "did not occur" and "occurred".
        grid : int, optional
            Cells of equal width; 4800 for grades, the query's own grid for its result.

        Returns
        -------
        Tally
            Of the event, ``OneVsRest(1)``; the tally of grades equals the tally of their rows.

        Raises
        ------
        InvalidPredictionsError
            For columns that are not there, the first row whose numbers are not counts or no
            probability, and rows that the query could not tally.

        Notes
        -----
        Linear in the rows of the table; log₂ n passes for grades with up to n rows of a kind.

        Examples
        --------
        >>> import caltest as ct
        >>> grades = {"n": [200, 50], "events": [1, 2], "probability": [0.01, 0.05]}
        >>> ct.Tally.from_table(grades)
        Tally(n=250, OneVsRest(1), 2 cells of 4800)
        """
        names = class_names(classes, 2)
        with count_table(table) as counts:
            if "key" in counts.names and "t4" in counts.names:
                columns = read_columns(counts, SQL_COLUMNS)
                return _of_cells(cls, columns, names, grid)
            grade_columns = {"n": n, "events": events, "probability": probability}
            grades = read_grades(counts, grade_columns)
        return _of_grades(cls, grades, names, GRID_CELLS if grid is None else grid)


def _of_grades(kind: Any, grades: Grades, names: Names, grid: int) -> Any:
    """Return the tally of grades, added up by the binary digits of their counts, highest first.

    ``kind`` is the class of tally, ``names`` the class names or None, ``grid`` the number of cells.
    Every row of a grade has the probability of the grade.
    """
    _refuse_more(grades.n)
    times = np.concatenate([grades.events, grades.n - grades.events])
    p, event = np.tile(grades.probability, 2), np.arange(times.size) < grades.n.size

    def once(rows: IntArray) -> Any:
        probs = np.ascontiguousarray(np.column_stack([p, 1.0 - p])[rows])
        key, sums, totals = Grid(grid).sums(probs, event[rows])
        head = (OneVsRest(1), grid, 2, names, np.ones(1))
        return kind(*head, key, np.zeros_like(key), sums, totals[None])

    digits = int(times.max()).bit_length()
    total = once(np.flatnonzero(times >> (digits - 1) & 1))
    for digit in range(digits - 2, -1, -1):
        total = total + total + once(np.flatnonzero(times >> digit & 1))
    return total


def _refuse_more(n: IntArray) -> None:
    if sum(n.tolist()) > ROWS_A_TALLY:
        raise StatisticError(f"a tally holds at most {ROWS_A_TALLY} rows")


def _of_cells(kind: Any, columns: Mapping[str, AnyArray], names: Names, grid: int | None) -> Any:
    """Return the tally of a query's result, or of several results concatenated.

    ``columns`` are the columns of the query's result by name. InvalidPredictionsError for rows that
    the query could not tally, and for grids that differ.
    """
    whole = {name: whole_numbers(columns[name], name) for name in SQL_COLUMNS if name != "weight"}
    key, n = whole["key"], whole["n"]
    refusals = [f"{several(int(n[key == code].sum()), 'row')} {why}"
            for code, why in REFUSED.items() if (key == code).any()]  # fmt: skip
    if refusals:
        raise InvalidPredictionsError(
            f"the query found {', '.join(refusals)}: repair them, or query a view without them"
        )
    _refuse_more(n)
    sizes = np.unique(whole["grid"])
    if sizes.size > 1 or grid not in (None, sizes[0]):
        remedy = "one at a time" if grid is None else f"not of {grid}"
        raise StatisticError(f"this table is of grid {', '.join(map(str, sizes))}, {remedy}")
    sums = np.column_stack([whole[name] for name in CELL_SUMS])
    events, t1 = whole["events"], whole["t1"]
    wrong = (n < 1) | (events < 0) | (events > n) | (np.abs(t1) > n * POSITIONS)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidPredictionsError(f"{nth(row)} has sums that {n[row]} rows cannot have")
    strata, stratum = np.unique(as_numbers(columns["weight"], "weight"), return_inverse=True)
    if strata[0] <= 0.0 or strata.size > MOST_WEIGHTS:
        raise StatisticError(
            f"there are {several(strata.size, 'weight')} from {strata[0]:g} on, and a tally keeps "
            f"up to {MOST_WEIGHTS} apart, all above 0: round them in a view"
        )
    last = Grid(int(sizes[0])).last
    if ((key < 0) | (key > last)).any():
        raise InvalidPredictionsError(f"key: there are others than 0 to {last} of grid {sizes[0]}")
    both, where = np.unique(stratum * (last + 1) + key, return_inverse=True)
    merged = np.zeros((both.size, len(CELL_SUMS)), dtype=np.int64)
    np.add.at(merged, where, sums)
    parts = np.stack([[whole[t], whole[f"{t}_rest"]] for t in TOTALS]).transpose(2, 0, 1)
    totals = np.zeros((strata.size, len(TOTALS), 2), dtype=np.int64)
    for start in range(0, n.size, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        np.add.at(totals, stratum[part], parts[part])
        totals = carried(totals)
    of_cell, key = np.divmod(both, last + 1)
    return kind(OneVsRest(1), int(sizes[0]), 2, names, strata, key, of_cell, merged, totals)
