"""Tallies of what is counted already: in a warehouse by a query, and grades or bins."""

import csv
import os
import subprocess
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import caltest as ct
from caltest.tallies.grid import SQL_COLUMNS, TOTALS
from caltest.tallies.scans import quoted


def hard(seed=1):
    """Predictions everywhere, at edges of cells and octaves and beside them, and outcomes."""
    rng = np.random.default_rng(seed)
    powers = 2.0 ** -np.arange(60) / 4800
    p = np.concatenate(
        [
            rng.random(20_000),
            rng.random(500).round(2),
            rng.integers(0, 2, 50).astype(float),
            10.0 ** rng.uniform(-320, 0, 3000),
            1.0 - 10.0 ** rng.uniform(-16, 0, 3000),
            np.arange(4801) / 4800,
            np.clip(np.arange(4801) / 4800 + rng.uniform(-2e-12, 2e-12, 4801), 0, 1),
            *(powers, np.nextafter(powers, 0), np.nextafter(powers, 1), 1 - powers),
            [5e-324, 0.5, *np.nextafter(0.5, [0, 1]), 1e-12, np.nextafter(1e-12, 0)],
        ]
    )
    return p, (rng.random(p.size) < 0.3).astype(int)


def in_duckdb(columns, *query, table="loans", **options):
    duckdb, pyarrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    connection.register("given", pyarrow.table(columns))
    connection.execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM given")
    return connection.execute(ct.tally_sql(table, *(query or ("p", "y")), **options)).fetchnumpy()


def total(high, low):
    """A total in units of 2⁻⁶³."""
    return sum(map(int, high)) * 2**43 + sum(map(int, low))


def same_totals(made, tally, tolerance=Fraction(1, 10**9)):
    for j, name in enumerate(TOTALS):
        got, wanted = total(*made.totals[:, j].T), total(*tally.totals[:, j].T)
        assert abs(got - wanted) <= tolerance * abs(wanted), name


@pytest.mark.parametrize("grid", [2, 7, 4800, pytest.param(10**6, marks=pytest.mark.slow)])
def test_the_query_has_the_sums_of_the_rows(grid):
    p, y = hard()
    result, tally = in_duckdb({"p": p, "y": y}, grid=grid), ct.Tally.of(p, y, grid=grid)
    made = ct.Tally.from_table(result)
    np.testing.assert_array_equal(made.key, tally.key)
    np.testing.assert_array_equal(made.sums, tally.sums)  # to the last bit
    same_totals(made, tally)
    assert (made.grid, made.lens) == (grid, tally.lens)


def test_weights_are_strata_and_rows_of_weight_0_are_left_out():
    p, y = hard(2)
    w = np.array([0.0, 0.5, 2.0])[np.arange(p.size) % 3]
    result = in_duckdb({"p": p, "y": y, "w": w}, "p", "y", weights="w")
    made, tally = ct.Tally.from_table(result), ct.Tally.of(p, y, weights=w)
    np.testing.assert_array_equal(made.strata, [0.5, 2.0])
    np.testing.assert_array_equal(made.sums, tally.sums)
    np.testing.assert_array_equal(made.stratum, tally.stratum)


@pytest.mark.parametrize("kind", ["bool", "int8", "float", "text", "decimal"])
def test_columns_of_any_type(kind):
    pyarrow = pytest.importorskip("pyarrow")
    p, y = np.array([0.25, 0.3, 0.75, 0.1]), np.array([0, 1, 1, 0])
    columns = {
        "bool": {"p": p, "y": y > 0},
        "int8": {"p": p, "y": y.astype(np.int8)},
        "float": {"p": p.astype(np.float32), "y": y.astype(float)},
        "text": {"p": [str(v) for v in p], "y": [str(v) for v in y]},
        "decimal": {"p": pyarrow.array([Decimal(str(v)) for v in p]), "y": y},
    }[kind]
    result, tally = in_duckdb(columns), ct.Tally.of(p, y)
    made = ct.Tally.from_table(result)
    np.testing.assert_array_equal(made.key, tally.key)  # 0.3 in 32 bits is meant as 0.3
    np.testing.assert_array_equal(made.sums, tally.sums)
    same_totals(made, tally)


def test_names_cannot_leave_their_quotes():
    p, y = hard(3)
    names = ('a "b" p', "y'; DROP TABLE x; --")
    table = '"; DROP TABLE x; --'
    result = in_duckdb(dict(zip(names, (p, y), strict=True)), *names, table=table)
    assert ct.Tally.from_table(result).n == p.size
    assert '"risk"."lo""ads"' in ct.tally_sql(("risk", 'lo"ads'), "p", "y")


def test_rows_that_cannot_be_tallied_are_counted():
    nan, inf = np.nan, np.inf
    columns = {
        "p": [0.5, None, 1e300, -0.1, nan, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
        "y": [1.0, 1.0, 1.0, 0.0, 0.0, None, 2.0, 0.5, 1.0, 1.0, 0.0],
        "w": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None, -1.0, inf],
    }
    result = in_duckdb(columns, "p", "y", weights="w")
    assert int(result["n"].sum()) == 11
    with pytest.raises(ct.InvalidPredictionsError) as error:
        ct.Tally.from_table(result)
    counts = ["1 row without a probability", "3 rows with a probability outside [0, 1]"]
    counts += ["3 rows with an outcome that is not 0 or 1", "3 rows without a weight ≥ 0"]
    assert all(count in str(error.value) for count in counts)
    with pytest.raises(ct.InvalidPredictionsError, match="no rows"):
        ct.Tally.from_table(in_duckdb({"p": np.zeros(0), "y": np.zeros(0)}))


def test_damaged_results_are_refused():
    result = in_duckdb({"p": [0.1, 0.6], "y": [0, 1]})
    for name, value, match in (
        ("n", 0, "cannot have"),
        ("events", 5, "cannot have"),
        ("key", 10**6, "others than 0 to 9694"),
        ("key", -9, "others than 0 to 9694"),
        ("grid", 100, "grid 100, 4800, one at a time"),
        ("weight", 0.0, "above 0"),
        ("t2", 0.5, "whole numbers"),
        ("n", 2**40, "at most"),
    ):
        broken = {k: v.astype(np.float64) for k, v in result.items()}
        broken[name][0] = value
        with pytest.raises(ValueError, match=match):
            ct.Tally.from_table(broken)
    with pytest.raises(ct.StatisticError, match="grid 4800, not of 100"):
        ct.Tally.from_table(result, grid=100)
    del result["entropy"]
    with pytest.raises(ct.InvalidPredictionsError, match="no column 'entropy'"):
        ct.Tally.from_table(result)


def test_postgresql_has_the_structure_of_duckdb():
    query = ct.tally_sql("loans", "p", "y", weights="w", dialect="postgresql")
    assert query.count("(") == query.count(")")
    assert all(f" AS {name}" in query for name in SQL_COLUMNS)
    assert "//" not in query  # of which PostgreSQL knows nothing
    assert "TRY_CAST" not in query
    assert query.count("OFFSET 0") == ct.tally_sql("loans", "p", "y").count("SELECT") - 1


def test_the_query_in_postgresql():
    if "CALTEST_POSTGRES" not in os.environ:
        pytest.skip("CALTEST_POSTGRES holds the arguments of psql, where there is a server")
    p, y = hard()

    def asked(text):
        psql = ["psql", *os.environ["CALTEST_POSTGRES"].split(), "-qX", "--csv"]
        done = subprocess.run(psql, input=text, text=True, capture_output=True, check=True)
        assert "ERROR" not in done.stderr, done.stderr
        return done.stdout

    rows = "\n".join(f"{float(a)!r},{b}" for a, b in zip(p, y, strict=True))
    made = "CREATE TEMPORARY TABLE loans (p float8, y boolean, w real);\n"
    made += f"\\copy loans (p, y) FROM stdin csv\n{rows}\n\\.\n"
    query = ct.tally_sql("loans", "p", "y", dialect="postgresql")
    text = list(csv.reader(asked(f"{made}{query};").splitlines()))
    result = {name: np.array(column, dtype=object).astype(float if name == "weight" else np.int64)
              for name, *column in zip(*text, strict=True)}  # fmt: skip
    tally = ct.Tally.of(p, y)
    np.testing.assert_array_equal(ct.Tally.from_table(result).sums, tally.sums)
    same_totals(made, tally)
    bad = made.replace("w real)", "w real, bad float8 DEFAULT 'NaN')")
    query = ct.tally_sql("loans", "bad", "y", weights="w", dialect="postgresql")
    assert f"4800,0,-2,{p.size}" in asked(f"{bad}{query};")


def expanded(n, events, p):
    labels = [np.arange(a) < b for a, b in zip(n, events, strict=True)]
    return np.repeat(p, n), np.concatenate(labels).astype(int)


@pytest.mark.parametrize("seed", range(8))
def test_grades_are_their_rows(seed):
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.random(30), rng.random(9).round(2), [0.0, 1.0, 0.5, 1e-9, 1 - 1e-9]])
    n = rng.integers(0, [2, 300, 5000][seed % 3], p.size)
    events = rng.binomial(n, rng.random(p.size))
    grid = [4800, 12][seed % 2]
    made = ct.Tally.from_table({"n": n, "events": events, "probability": p}, grid=grid)
    assert made == ct.Tally.of(*expanded(n, events, p), grid=grid, as_is=True)


BAD = [
    ({"events": [1, 11, 0]}, r"events is 11 in row 1, more than the 10 rows of its grade"),
    ({"events": [1, -1, 0]}, r"events is -1 in row 1; these are whole numbers ≥ 0"),
    ({"n": [10, 10.5, 10]}, r"n is 10.5 in row 1; these are whole"),
    ({"n": [10, 2**62, 10]}, r"n is 4.611686018427388e\+18 in row 1"),
    ({"n": [0, 0, 0], "events": [0, 0, 0]}, r"n is 0 in every row"),
    ({"n": [10, None, 10]}, r"n has no value in row 1"),
    ({"probability": [0.1, 1.2, 0.1]}, r"probability is 1.2 in row 1: a probability lies in"),
    ({"probability": [0.1, 100.0, 1.5]}, r"probability is 100 in row 1: a probability lies in"),
    ({"probability": ["1%", "2%", "3"]}, r"percent signs, but not in row 2 \(3\)"),
    ({"probability": [0.1, 0.2]}, r"not of one length"),
    ({"n": [], "events": [], "probability": []}, r"no rows"),
    ({"n": [2**32] * 3}, r"at most 8589934591 rows"),
]


@pytest.mark.parametrize(("change", "match"), BAD)
def test_what_is_no_count_is_refused_by_its_row(change, match, tmp_path):
    table = {"n": [10, 10, 10], "events": [1, 1, 1], "probability": [0.1, 0.2, 0.3]} | change
    with pytest.raises(ValueError, match=match):
        ct.Tally.from_table(table)
    if "at most" not in match:
        with pytest.raises(ct.InvalidPredictionsError, match=match):
            ct.grade_tests(table)
