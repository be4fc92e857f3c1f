"""The query whose result is a tally: micro-cell sums as a GROUP BY, where the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caltest._base.checks import one_of
from caltest.binning import EDGE_TOLERANCE
from caltest.errors import StatisticError
from caltest.tally.grid import GRID, SUMS, TOTALS, Grid
from caltest.tally.rows import CLIP, CUT, FINE, HIGH, LOW, OCTAVES, UNIT

#: What rows are counted under in place of a cell, and why they cannot be tallied.
REFUSED = {
    -1: "without a probability",
    -2: "with a probability outside [0, 1]",
    -3: "with an outcome that is not 0 or 1",
    -4: "without a weight ≥ 0",
}
#: The columns of the result: whole numbers but for the weight.
COLUMNS = ("grid", "weight", "key", *SUMS, *TOTALS, *(f"{name}_rest" for name in TOTALS))
#: Adding and subtracting it rounds to whole numbers, ties to even, in every IEEE arithmetic.
ROUNDER = "6755399441055744e0"
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
    grid: int = GRID,
    dialect: str = "duckdb",
) -> str:
    """Return the query that tallies a table where it is; :meth:`Tally.from_table` reads its result.

    A GROUP BY over micro-cells: a row for each occupied cell (of each weight) with the sums of
    :class:`Tally`, which are those of :meth:`Tally.of` to the last bit, and its part of the totals,
    where logarithms may differ in their last bits (1e-9 of the totals). All are whole numbers, so
    that the order of rows and the number of threads change nothing.

    Parameters
    ----------
    table : str or sequence of str
        The name of a table, view or (DuckDB) file; ``("schema", "table")`` for a qualified one.
    probs, label : str
        Columns: the probability of an event, and whether it occurred (0, 1 or boolean). Names are
        quoted as they stand, so that upper and lower case matter in PostgreSQL.
    weights : str, optional
        The column of weights ≥ 0, up to 1024 different ones; rows of weight 0 are left out.
    grid : int, default 4800
        Cells of equal width, as in :meth:`Tally.of`.
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
    One pass over the table. Rows that cannot be tallied (no probability or one outside [0, 1],
    an outcome other than 0 and 1, a weight that is missing, negative or infinite) are counted under
    the keys −1 to −4, and ``from_table`` refuses them by their number. Numbers of 32 bits that are
    the nearest to a decimal of six digits are read as that decimal, as :func:`scan` does.

    Examples
    --------
    >>> query = tally_sql(("risk", "loans"), "pd", "default")
    >>> "GROUP BY" in query, '"risk"."loans"' in query
    (True, True)
    """
    one_of("dialect", dialect, tuple(_DIALECTS))
    last, word = Grid(grid).last, _DIALECTS[dialect]
    origin = ".".join(map(quoted, [table] if isinstance(table, str) else table))
    p, y = quoted(probs), quoted(label)
    single, number = word["single"].format(p), word["number"].format(p)
    decimal = f"{_rounded(f'{number} * 1e6')} / 1e6"
    w = "1e0" if weights is None else word["number"].format(quoted(weights))
    steps = [
        {
            "p": f"CASE WHEN {single} AND CAST({decimal} AS REAL) = CAST({number} AS REAL) "
            f"THEN {decimal} ELSE {number} END",
            "y": word["label"].format(y),
            "w": w,
        },
        *_steps(grid, last),
    ]
    query = f"FROM {origin}"
    for columns in steps:
        listed = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        kept = "" if columns is steps[0] else "*, "
        query = f"FROM (\n  SELECT {kept}{listed}\n  {query}{word['fence']}\n) AS s"
    return f"SELECT {_result(grid, word)}\n{query}\nWHERE key < 0 OR w > 0\nGROUP BY 2, 3"


def quoted(name: str) -> str:
    """Return an identifier in quotes, which it cannot leave."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise StatisticError(f"{name!r} is not the name of a table or column")
    return '"' + name.replace('"', '""') + '"'


def _rounded(value: str) -> str:
    return f"(({value}) + {ROUNDER} - {ROUNDER})"


def _steps(grid: int, last: int) -> list[Mapping[str, str]]:
    """Return what ``add_up`` computes of p, y and w, each step from the ones before."""
    size, lowest = f"{grid}e0", 2.0**-OCTAVES
    refused = (
        "WHEN p IS NULL THEN -1 WHEN NOT (p >= 0 AND p <= 1) THEN -2 "
        "WHEN y IS NULL OR NOT (y = 0 OR y = 1) THEN -3 "
        "WHEN w IS NULL OR NOT (w >= 0 AND w <= 1.7976931348623157e308) THEN -4"
    )
    octave = f"GREATEST(1e0, {OCTAVES + 1}e0 + e + CASE WHEN near >= POWER(2e0, e + 1) THEN 1 "
    octave += "WHEN near < POWER(2e0, e) THEN -1 ELSE 0 END)"
    near_edge = f"j > 0 AND ABS(off) <= {EDGE_TOLERANCE!r}"
    part = f"place / POWER(2e0, octave - {OCTAVES})"
    sure = "(q = 0 OR rest = 0)"
    values = {
        "cut_rz": f"CASE WHEN NOT {sure} THEN r * zc WHEN (y = 1) = (q > 0) THEN 0e0 "
        f"ELSE {CUT!r} END",
        "cut_vz_low": "CASE WHEN upper THEN 0e0 ELSE v * zc END",
        "cut_vz_high": "CASE WHEN upper THEN v * zc ELSE 0e0 END",
        "cut_vzz": "v * zc * zc",
        "rz": f"CASE WHEN {sure} THEN 0e0 ELSE r * z END",
        "vzz": "v * z * z",
        "log_score": "CASE WHEN y = 1 THEN -a ELSE -b END",
        "entropy": "-q * a - rest * b",
    }
    return [
        {"refused": f"CASE {refused} ELSE 0 END"},
        {"q": "CASE WHEN refused < 0 THEN 0.5e0 ELSE p END"},
        {"rest": "1e0 - q", "upper": "q > 0.5e0"},
        {"x": "CASE WHEN upper THEN rest ELSE q END"},
        {"place": f"x * {size}"},
        {
            "j": _rounded("place"),
            "near": f"GREATEST(place, {lowest!r})",
            "a": f"LN(CASE WHEN {sure} THEN 1e0 ELSE q END)",
            "b": f"LN(CASE WHEN {sure} THEN 1e0 ELSE rest END)",
        },
        {"off": f"x - j / {size}", "e": "FLOOR(LN(near) / LN(2e0))", "z": "a - b", "v": "q * rest"},
        {"octave": octave},
        {
            "own": f"CASE WHEN x = 0 THEN 0 WHEN {near_edge} THEN {OCTAVES - 1} + 2 * j "
            f"WHEN place < 1 THEN octave ELSE {OCTAVES} + 2 * FLOOR(place) END",
            "t0": f"CASE WHEN x = 0 THEN 0 WHEN {near_edge} THEN off * {1.0 / EDGE_TOLERANCE!r} "
            f"WHEN place < 1 AND octave = 1 THEN 2 * ({part}) - 1 "
            f"WHEN place < 1 THEN 4 * ({part}) - 3 ELSE 2 * (place - FLOOR(place)) - 1 END",
            "r": "CASE WHEN y = 1 THEN rest ELSE -q END",
            "zc": f"CASE WHEN x >= {CLIP!r} THEN z WHEN upper THEN {-CUT!r} ELSE {CUT!r} END",
        },
        {
            "key": "CAST(CASE WHEN refused < 0 THEN refused "
            f"WHEN upper THEN {last} - own ELSE own END AS BIGINT)",
            "u": "CASE WHEN upper THEN -t0 ELSE t0 END",
        },
        {"whole": _rounded(f"u * {UNIT!r}")},
        {
            "t": f"whole / {UNIT!r}",
            "t1_rest": _rounded(f"(u - whole / {UNIT!r}) * {FINE!r}"),
            **{name: f"({value}) * {HIGH!r}" for name, value in values.items()},
        },
    ]


def _result(grid: int, word: Mapping[str, str]) -> str:
    """Return the columns of the result."""

    def total(value: str) -> str:
        return f"SUM(CAST({value} AS BIGINT))"

    powers = {"t2": "t * t", "t3": "t * t * t", "t4": "(t * t) * (t * t)"}
    powers = {name: _rounded(f"{power} * {UNIT!r}") for name, power in powers.items()}
    sums = {"t1": "whole", **powers, "events": "y", "events_t": "y * whole", "t1_rest": "t1_rest"}
    shown = {
        "grid": str(grid),
        "weight": "CASE WHEN refused < 0 THEN 0e0 ELSE w END",
        "key": "key",
        "n": "COUNT(*)",
    }
    ok = "CASE WHEN refused < 0 THEN 0 ELSE {} END"
    shown |= {name: f"CAST({total(ok.format(sums[name]))} AS BIGINT)" for name in SUMS[1:]}
    carry = f"{2**LOW}"
    for name in TOTALS:
        high, low = total(f"FLOOR({name})"), f"FLOOR(({name} - FLOOR({name})) * {2.0**LOW!r})"
        over = word["quotient"].format(total(low), carry)
        shown[name] = f"CAST({high} + {over} AS BIGINT)"
        shown[f"{name}_rest"] = f"CAST(MOD({total(low)}, {carry}) AS BIGINT)"
    return ",\n  ".join(f"{shown[name]} AS {name}" for name in COLUMNS)
