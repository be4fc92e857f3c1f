"""Tests of grades: published numbers, SciPy's slow twins, exact size, and what is printed."""

import itertools
import json

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
    for words in ("pd: row 1 is 3.5", "percent=True"):
        refused(words, "grades", path)
    assert "pd in percent" in done("grades", path, "--percent")


@pytest.mark.parametrize(
    ("names", "cell"),
    [
        (("Rating", "Number of obligors", "# Defaults", "PD Kalibriert (%)"), "{:g}"),
        (("pool", "N", "D", "PD"), "{:g} %"),
        (("bin", "nAccounts", "n_bad", "pd_pct"), "{:g}"),
        (("name", "borrowers", "observed", "Probability of default"), "{:g}%"),
        (("Bonitätsklasse", "Anzahl Kunden", "davon ausgefallen", "Mittlere PD"), "{:g} %"),
        (("Classe de risque", "Nombre d'emprunteurs", "Défauts observés", "PD moyenne"), "{:g}%"),
        (("Classe di rating", "Numero clienti", "Insolvenze", "Probabilità di default"), "{:g}%"),
        (("Calificación", "Nº de clientes", "Impagos", "Probabilidad de impago"), "{:g}%"),
    ],
)
def test_columns_have_the_names_that_people_give_them(names, cell, tmp_path):
    grade, n, events, p = GRADES.values()
    percents = [cell.format(100 * value) for value in p]
    sums = ["Total", sum(n), sum(events), ""]
    columns = [[*c, last] for c, last in zip((grade, n, events, percents), sums, strict=True)]
    path = tmp_path / "grades.csv"
    path.write_text("\n".join(",".join(map(str, r)) for r in [names, *zip(*columns, strict=True)]))
    found, plain = ct.grade_tests(path), ct.grade_tests(GRADES)
    assert (found.portfolio, found.grades) == (plain.portfolio, plain.grades)
    read = f"read 7 grades: n from {names[1]}, events from {names[2]}, probability from {names[3]}"
    assert found.notes[:2] == (
        f"{read} in percent, names from {names[0]}",
        "row 8, Total, is the sum of the others and no grade",
    )
    frame = dict(zip(names, columns, strict=True))
    assert ct.grade_tests(frame).portfolio == plain.portfolio
    frame[names[1]] = [*n, sum(n) + 1]
    with pytest.raises(ct.InvalidPredictionsError, match="row 7, Total, has n 12761, and the oth"):
        ct.grade_tests(frame)


def test_columns_of_other_names_are_proposed_by_their_cells(tmp_path, done, refused):
    path = tmp_path / "g.csv"
    head = "Stage,Cases,Lost,Rate,Expected\n"
    path.write_text(head + "1,1'200,2,0.17,0.1\n2,900,14,1.56,1.0\n3,300,31,10.3,8.0\n")
    options = "--n Cases --events Lost --probability Expected --names Stage --percent"
    refused(f"run: caltest grades {path} {options}", "grades", path)
    assert "n=2400" in done("grades", path, *options.split())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"N": [9], "accounts": [9], "D": [1], "PD": [0.1]}, "be column N or accounts; say n="),
        ({"N": [9], "bad %": [1], "PD": [0.1]}, "no column 'events' among N, bad %, PD: name it"),
        ({"N": [9], "D": [1], "PD (%)": [0.1]}, r"percent=True or percent=False"),
        ({"N": [9, 9], "D": [1, 1], "PD": ["1%", "0.1"]}, "row 0: '1%' .* write all in one way"),
        ({"N": [9], "D": [1], "PD": [None]}, "column PD: row 0 has no value"),
    ],
)
def test_columns_that_could_be_several_are_asked_for(table, message):
    with pytest.raises(ct.InvalidPredictionsError, match=message):
        ct.grade_tests(table)
