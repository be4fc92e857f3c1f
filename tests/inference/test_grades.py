"""Tests of grades: published numbers, SciPy's slow twins, exact size, and what is printed."""

import itertools
import json
import shlex

import numpy as np
import pytest
from scipy import stats

import caltest as ct
from caltest.inference.null import holm

#: Rows, events and PD of seven rating grades.
GRADES = {
    "grade": ["AAA", "AA", "A", "BBB", "BB", "B", "CCC"],
    "n": [120, 800, 2400, 5100, 3300, 900, 140],
    "events": [0, 2, 9, 71, 140, 83, 41],
    "probability": [0.0003, 0.001, 0.003, 0.009, 0.03, 0.08, 0.22],
}
ALTERNATIVES = ["greater", "less", "two-sided"]


def test_against_published_values():
    """What pp.testing of the R package PDtoolkit prints for three grades of a test portfolio."""
    table = {"n": [406, 480, 114], "events": [55, 41, 10]}
    table["probability"] = [0.10342906, 0.09952396, 0.09571932]
    found = ct.grade_tests(table).grades
    exact, jeffreys = [0.02389227, 0.86744061, 0.66055279], [0.01995857, 0.84955196, 0.59864873]
    np.testing.assert_allclose([row.exact_pvalue for row in found], exact, atol=6e-9)
    np.testing.assert_allclose([row.jeffreys_pvalue for row in found], jeffreys, atol=6e-9)


def test_against_enumeration_of_the_portfolio():
    n, events, p = [3, 2, 4, 2], [2, 0, 3, 2], [0.1, 0.5, 0.3, 1.0]
    law = np.ones(1)
    for chance in np.repeat(p, n):
        law = np.convolve(law, [1.0 - chance, chance])
    table = {"n": n, "events": events, "probability": p}
    for alternative, tail in (("greater", law[7:].sum()), ("less", law[:8].sum())):
        found = ct.grade_tests(table, alternative=alternative).portfolio
        assert found.exact_pvalue == pytest.approx(tail, rel=1e-12)
    assert found.probability == pytest.approx(np.repeat(p, n).mean())


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_against_scipy(alternative):
    rng = np.random.default_rng(7)
    n = rng.integers(1, 3000, 40)
    p = rng.beta(0.3, 3, 40).clip(1e-5, 1)
    table = {"n": n, "events": rng.binomial(n, np.minimum(1, 1.1 * p)), "probability": p}
    for method in ("exact", "jeffreys"):
        found = ct.grade_tests(table, alternative=alternative, method=method, alpha=0.1)
        for row in found.grades:
            test = stats.binomtest(row.events, row.n, row.probability, alternative="greater").pvalue
            other = stats.binomtest(row.events, row.n, row.probability, alternative="less").pvalue
            law = stats.beta(row.events + 0.5, row.n - row.events + 0.5)
            below, above = law.cdf(row.probability), law.sf(row.probability)
            below, above = (1.0 if row.events == 0 else below), (1.0 if row.rate == 1 else above)
            both = {"greater": (test, below), "less": (other, above)}
            both["two-sided"] = min(1, 2 * min(test, other)), min(1, 2 * min(below, above))
            assert (row.exact_pvalue, row.jeffreys_pvalue) == pytest.approx(both[alternative])
            if method == "exact":
                low, high = stats.binomtest(row.events, row.n).proportion_ci(0.9)
            else:
                low = law.ppf(0.05) if row.events else 0.0
                high = law.ppf(0.95) if row.rate < 1 else 1.0
            assert row.interval == pytest.approx((low, high))
        every = [*found.grades, found.portfolio]
        adjusted = holm([getattr(row, f"{method}_pvalue") for row in every])
        assert [row.adjusted for row in every] == pytest.approx(adjusted)


@pytest.mark.slow
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_any_wrong_finding_is_as_rare_as_alpha(alternative):
    """Enumerates all counts of four small portfolios, each weighed by its probability."""
    sizes, words = [], set()
    for n, p in (
        ((5, 8, 6), (0.05, 0.2, 0.4)),
        ((3, 12), (0.5, 0.03)),
        ((1, 1, 14), (0.001, 0.3, 0.12)),
        ((30, 6), (0.2, 0.7)),
    ):
        total, wrong = 0.0, 0.0
        for events in itertools.product(*(range(size + 1) for size in n)):
            chance = np.prod(stats.binom.pmf(events, n, p))
            table = {"n": n, "events": events, "probability": p}
            found = ct.grade_tests(table, alternative=alternative, alpha=0.1)
            total += chance
            wrong += chance * bool(found.rejected)
            words |= {str(row.verdict) for row in found.rejected}
        assert total == pytest.approx(1.0)
        sizes.append(wrong)
    assert 0.02 < max(sizes) <= 0.1
    kinds = {"greater": {"risk underestimated"}, "less": {"risk overestimated"}}
    assert words == kinds.get(alternative, kinds["greater"] | kinds["less"])


def test_one_obligor_who_does_not_default_refutes_nothing():
    """The bare formula would, in 99.9 % of calibrated portfolios."""
    found = ct.grade_tests({"n": [1], "events": [0], "probability": [1e-3]}, method="jeffreys")
    assert found.portfolio.jeffreys_pvalue == 1.0
    assert not found.rejected
    assert "1: 0.0403" in found.notes[0]
    every = {"n": [1], "events": [1], "probability": [0.999]}
    assert "0.0403" in ct.grade_tests(every, alternative="less").notes[0]
    assert not ct.grade_tests(every, alternative="less", method="jeffreys").rejected
    assert not ct.grade_tests(every).notes


@pytest.mark.parametrize("method", ["exact", "jeffreys"])
def test_two_sided_tests_reject_what_lies_outside_the_interval(method):
    for events, p in itertools.product(range(21), [0.0, 1e-4, 0.05, 0.3, 0.77, 0.999, 1.0]):
        table = {"n": [20], "events": [events], "probability": [p]}
        asked = {"method": method, "alternative": "two-sided", "alpha": 0.1}
        (row,) = ct.grade_tests(table, **asked).grades
        low, high = row.interval
        assert (row.verdict is ct.GradeVerdict.NO_EVIDENCE) == (low <= p <= high)
        side = {True: "risk underestimated", False: "risk overestimated"}[row.rate > p]
        assert row.verdict in (side, "no evidence")


def test_certain_grades_and_empty_ones():
    table = {"n": [10, 0, 5, 7], "events": [0, 0, 5, 1], "probability": [0.0, 0.2, 1.0, 0.0]}
    found = ct.grade_tests(table, alternative="two-sided")
    assert [row.exact_pvalue for row in found.grades] == [1.0, 1.0, 1.0, 0.0]
    assert [row.name for row in found.rejected] == ["4", "all"]  # what was impossible happened
    assert np.isnan(found.grades[1].rate)
    without = {name: [c for c, n in zip(column, table["n"], strict=True) if n]
               for name, column in table.items()}  # fmt: skip
    fewer = ct.grade_tests(without, alternative="two-sided")
    assert [row.adjusted for row in found.grades if row.n] == [r.adjusted for r in fewer.grades]


def test_command_line(tmp_path, run, done, refused):
    path = tmp_path / "grades.csv"
    rows = [["grade", "obligors", "defaults", "pd"], *zip(*GRADES.values(), strict=True)]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    done("grades", path)
    assert run("grades", path, "--fail-on-miscalibration")[0] == 1
    done("grades", path, "--fail-on-miscalibration", "--alternative", "less")
    asked = ("--json", "--out", tmp_path / "grades.md", "--method", "jeffreys")
    assert json.loads(done("grades", path, *asked))["method"] == "jeffreys"
    path.write_text("obligors,defaults,pd\n10,2,3.5\n")
    refused("pd is 3.5 in row 1", "grades", path)
    assert "probability from pd / 100" in done("grades", path, "--probability", "pd / 100")
    path.write_text(
        "".join(f"{r},{n},{d},{p}\n" for r, n, d, p in rows[:1]) + "Y,9,1,.1\nZ,9,1,.1\n"
    )
    done("grades", path, "--where", "grade <> 'Z'")


@pytest.mark.parametrize(
    ("names", "cell", "expression"),
    [
        (("Rating", "Obligors", "Defaults", "PD"), "{:g} %", None),
        (("bin", "accounts", "bads", "pd_pct"), "{:g}", "pd_pct / 100"),
        (("name", "n", "events", "Probability"), "{:g}%", None),
        (("Klasse", "Kunden", "Ausfälle", "PD (%)"), "{:g}", '"PD (%)" / 100'),
    ],
)  # fmt: skip
def test_columns_are_read_by_the_contract_or_as_they_are_named(names, cell, expression, tmp_path):
    grade, n, events, p = GRADES.values()
    percents = [cell.format(100 * value) for value in p]
    sums = ["Total", sum(n), sum(events), ""]
    columns = [[*c, last] for c, last in zip((grade, n, events, percents), sums, strict=True)]
    path = tmp_path / "grades.csv"
    path.write_text("\n".join(",".join(map(str, r)) for r in [names, *zip(*columns, strict=True)]))
    options = {"n": f'"{names[1]}"', "events": f'"{names[2]}"'} if expression else {}
    options |= {"probability": expression} if expression else {}
    found, plain = ct.grade_tests(path, **options), ct.grade_tests(GRADES)
    assert found.grades == plain.grades
    assert found.portfolio == plain.portfolio
    read = f"read 7 grades: n from {names[1]}, events from {names[2]}, probability from "
    assert found.notes[0] == f"{read}{expression or names[3]}, names from {names[0]}"
    assert found.notes[1] == "row 8, Total, is the sum of the others and no grade"


def test_a_row_with_a_probability_that_is_the_sum_of_the_others_is_asked_about():
    table = {"grade": ["A", "B", "All"], "n": [100, 50, 150], "events": [4, 3, 7]}
    table["pd"] = [0.03, 0.05, 0.04]
    with pytest.raises(ct.DoubtfulInputError, match="row 2, All, has as many rows") as caught:
        ct.grade_tests(table)
    (reading,) = caught.value.readings
    assert reading.options == {"where": "grade <> 'All'"}
    assert [g.name for g in ct.grade_tests(table, **reading.options).grades] == ["A", "B"]
    assert len(ct.grade_tests(table, as_is=True).grades) == 3


def test_percents_by_name_below_one_are_asked_about():
    table = {"n": [900], "events": [5], "PD (%)": [0.5]}
    with pytest.raises(
        ct.DoubtfulInputError, match="could be percents, as its name says"
    ) as caught:
        ct.grade_tests(table, probability='"PD (%)"')
    found = [
        ct.grade_tests(table, **r.options).grades[0].probability for r in caught.value.readings
    ]
    assert found == [0.005, 0.5]


def test_columns_of_other_names_are_proposed_by_their_cells(tmp_path, done, refused):
    path = tmp_path / "g.csv"
    head = "Stage,Cases,Lost,Rate,Expected\n"
    path.write_text(head + "1,1'200,2,0.17,0.1\n2,900,14,1.56,1.0\n3,300,31,10.3,8.0\n")
    options = ["--n", "Cases", "--events", "Lost", "--probability", "Expected / 100"]
    refused(f"run: caltest grades {path} {shlex.join(options)}", "grades", path)
    assert "n=2400" in done("grades", path, *options)


def test_outcomes_of_rows_are_no_grades():
    rows = {"p": [0.2, 0.4, 0.9], "label": [0, 1, 1]}
    with pytest.raises(
        ct.InvalidPredictionsError, match=r"each row is one outcome \(label\), not a grade"
    ) as caught:
        ct.grade_tests(rows)
    assert caught.value.readings[0].verb == "audit"


def test_counts_may_be_expressions_and_grouped_in_thousands():
    table = {"good": ["1 100", "90"], "bad": [100, 10], "pd": [0.08, 0.1]}
    found = ct.grade_tests(table, n="CAST(REPLACE(good, ' ', '') AS INTEGER) + bad", events="bad")
    assert [row.n for row in found.grades] == [1200, 100]
    assert ct.grade_tests({"n": ["1'100", "90"], **{k: table[k] for k in ("pd",)}, "events": [9, 9]}
                          ).grades[0].n == 1100  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"N": [9], "accounts": [9], "defaults": [1], "PD": [0.1]}, "n could be N or accounts"),
        (
            {"N": [9], "bad %": [1], "PD": [0.1]},
            "does not recognise a column name as events",
        ),
        ({"n": [9, 9], "events": [1, 1], "PD": ["1%", "0.1"]}, "percent signs, but not in row 1"),
        ({"n": [9], "events": [1], "PD": [None]}, "PD has no value in row 0"),
        ({"n": [9], "events": [10], "PD": [0.1]}, "events is 10 in row 0, more than the 9 rows"),
        ({"n": [9.5], "events": [1], "PD": [0.1]}, "n is 9.5 in row 0; these are whole numbers"),
        ({"n": [0], "events": [0], "PD": [0.1]}, "n is 0 in every row"),
        ({"n": [9, 8], "events": [1, 1], "pd": [0.1, 0.2], "bin": ["a", "a"]}, "a is in row 0 and"),
        ({"n": [9], "events": [1], "PD": [-0.1]}, "PD is -0.1 in row 0: a probability lies in"),
    ],
)
def test_tables_that_cannot_be_read_say_why(table, message):
    with pytest.raises(ct.InvalidPredictionsError, match=message):
        ct.grade_tests(table)


def test_a_one_sided_test_says_that_predictions_are_above_the_interval():
    table = {"n": [4000, 6000], "events": [40, 120], "probability": [0.0101, 0.03]}
    found = ct.grade_tests(table)
    assert [row.unseen for row in found.grades] == [False, True]
    assert found.portfolio.unseen
    assert not found.rejected
    assert "the prediction of the portfolio (2.204 %) is above the interval" in str(found)
    assert "alternative='two-sided'" in str(found)
    for alternative in ("less", "two-sided"):
        other = ct.grade_tests(table, alternative=alternative)
        assert not any(row.unseen for row in (*other.grades, other.portfolio))
        assert "above the interval" not in str(other)
    assert ct.GradeTests.from_json(found.to_json()) == found


def test_a_one_sided_test_says_that_predictions_are_below_the_interval():
    found = ct.grade_tests(
        {"n": [4000], "events": [120], "probability": [0.02]}, alternative="less"
    )
    assert found.portfolio.unseen
    assert "the prediction (2 %) is below the interval" in str(found)


def test_intervals_of_many_grades_that_miss_by_chance_are_not_mentioned():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.01, 0.1, 200)
    table = {"n": [2000] * 200, "events": rng.binomial(2000, p), "probability": p}
    found = ct.grade_tests(table)
    assert sum(row.unseen for row in found.grades) == 6
    assert not found.portfolio.unseen
    assert "interval in" not in str(found)


def test_a_table_of_many_grades_prints_those_of_smallest_p_value():
    n = np.full(500, 100)
    events = np.zeros(500, int)
    events[77] = 30
    table = {"n": n, "events": events, "probability": np.full(500, 0.01)}
    found = ct.grade_tests(table)
    text = str(found)
    assert len(found.printed) == 20
    assert found.printed[0] is found.grades[77]
    assert len(found.grades) == 500
    assert found.to_frame().shape[0] == 500
    assert len(text.splitlines()) < 40
    assert "have the other 480" in text
    assert "no row has an event (499 grades)" in text
    assert text.count(": 0.1") < 20  # of Jeffreys' formula, ten values are noted
