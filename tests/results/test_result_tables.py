"""Results in notebooks, Markdown and LaTeX: the same cells everywhere, and names stay text."""

import inspect
import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser

import numpy as np
import pytest

import caltest as ct
from caltest.results import Result
from caltest.results import rendering as tables

EVIL = ["<script>alert(1)</script>", "a|b & $x_1$ \\ 100 % #{}~^", "*bold* _it_ `code` [x](y)"]
PROBS = np.random.default_rng(1).dirichlet(np.ones(3), 60)
LABELS = np.random.default_rng(2).integers(0, 3, 60)
DATA = ct.Predictions.of(PROBS, LABELS, classes=EVIL)
EVENT = ct.OneVsRest(0)(DATA)
FEW = {"n_resamples": 199, "rng": 0}

#: A result of every kind; a new one gets a row here.
RESULTS = {
    "AuditReport": lambda: ct.audit(DATA, **FEW),
    "BandTest": lambda: ct.reliability_fit(DATA, fit="band").band_test(),
    "BinSensitivity": lambda: ct.bin_sensitivity(DATA),
    "BrierDecomposition": lambda: ct.brier_decomposition(DATA),
    "CORPDecomposition": lambda: ct.corp_decomposition(DATA),
    "CalibrationTestResult": lambda: ct.calibration_test(DATA, lens=ct.OneVsRest(0)),
    "ComparisonResult": lambda: ct.compare(DATA, DATA, names=(EVIL[0], EVIL[1])),
    "ComparisonTable": lambda: ct.compare_models(dict.fromkeys(EVIL, DATA)),
    "ConfidenceIntervalResult": lambda: ct.confidence_interval(DATA, **FEW),
    "EquivalenceTestResult": lambda: ct.equivalence_test(DATA, tolerance=0.3, **FEW),
    "GateResult": lambda: ct.gate(DATA, against=DATA, tolerance=0.3, margin=0.1, names=EVIL[:2]),
    "GradeTests": lambda: ct.grade_tests(
        {"grade": EVIL, "n": [9, 40, 0], "events": [0, 9, 0], "probability": [0.01, 0.1, 0.5]}
    ),
    "Plan": lambda: ct.plan(ct.planning.LogisticNormal(0.1, 0.75), statistic="slope", width=0.4),
    "PromiseResult": lambda: ct.promise([0.9, 0.2], [1, 1], ct.Costs([[0, 4], [1, 1]])),
    "DecisionCurve": lambda: ct.decision_curve([0.9, 0.2], [1, 1], [0.2, 0.5]),
    "RevisionTest": lambda: ct.Revisions(
        [1, 1, 1, 2, 2], [1, 2, 3, 1, 2], [0.3, 0.5, 0.2, 0.9, 0.6]
    ).test(),
    "CoxRecalibration": lambda: ct.cox_recalibration(DATA),
    "ComparisonMonitor": lambda: ct.ComparisonMonitor(lens=ct.OneVsRest(0)).update(DATA, DATA),
    "Monitor": lambda: ct.Monitor(lens=ct.OneVsRest(0)).update(DATA),
    "JointTestResult": lambda: ct.joint_test(
        DATA, pairs=[(ct.ECE(), ct.TopK(1)), (ct.ScoreGap(), ct.Canonical())], **FEW
    ),
    "MetaAnalysis": lambda: ct.meta_analysis(EVENT, by=np.array(EVIL)[np.arange(60) % 2]),
    "ReliabilityCurve": lambda: ct.reliability_curve(DATA, lens=ct.Canonical(), bins=2),
    "ReliabilityDifference": lambda: ct.reliability_difference(DATA, DATA, bins=3),
    "ReliabilityFit": lambda: ct.reliability_fit(DATA, n_resamples=99),
    "ReliabilitySimplex": lambda: ct.reliability_simplex(DATA),
    "IndividualErrorResult": lambda: ct.individual_error(
        ct.Predictions.of_votes([[0.2, 0.8], [0.5, 0.5], [0.4, 0.6]], [[1, 2], [3, 0], [0, 1]]),
        n_resamples=19,
    ),
    "WorstClassResult": lambda: ct.worst_class(DATA, **FEW),
    "SegmentSearch": lambda: ct.segment_search(
        DATA,
        features={name: np.roll(EVIL * 20, j) for j, name in enumerate(EVIL)},
        min_rows=9,
        **FEW,
    ),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    made = RESULTS[request.param]()
    assert type(made).__name__ == request.param
    return made


def test_every_kind_is_here():
    public = {name: getattr(ct, name) for name in ct.__all__}
    known = {k for k, v in public.items() if isinstance(v, type) and issubclass(v, Result)}
    assert known == {*RESULTS, "Report"}  # a page of such results, see test_report.py


@pytest.mark.parametrize("name", sorted(RESULTS.keys() - {"Monitor", "ComparisonMonitor"}))
def test_every_field_is_documented(name):
    kind = getattr(ct, name)
    written = inspect.getdoc(kind)  # Python 3.13 strips the indentation itself
    listed, _, _ = written.partition("Attributes\n")[2].partition("Notes\n")
    heads = re.findall(r"^(\S.*?) : |^(n, n_classes,.*)$", listed, re.M)
    named = {word for head in heads for part in head for word in part.split(", ")}
    assert named >= {field.name for field in fields(kind) if not field.kw_only}
    assert "n_resamples" in named


class Page(HTMLParser):
    """The tags of a page, the rows of its tables, and its paragraphs."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.paragraphs, self._open = set(), [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th", "p"):
            self._open = ""

    def handle_data(self, data):
        if self._open is not None:
            self._open += data

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(self._open)
        if tag == "p":
            self.paragraphs.append(self._open)
        if tag in ("td", "th", "p"):
            self._open = None


def expected(result):
    """Return the rows of all tables as plain text."""
    rows = []
    for columns in result._tables():
        heads, cells, _ = tables.texts(columns, str)
        rows += [heads, *map(list, cells)]
    return rows


def test_json_round_trip(result):
    again = type(result).from_json(result.to_json())
    assert (again.as_dict(), str(again)) == (result.as_dict(), str(result))


def test_every_result_says_how_it_was_made_and_how_it_ended(result):
    if type(result).__name__ != "Plan":
        assert f" · n={result.n}" in result.recipe
        assert result.recipe.endswith(f" · K={result.n_classes} · caltest {ct.__version__}")
    assert "\n" not in result.recipe
    assert result.ended == "complete"
    assert "Interrupted" not in str(result)
    cut = replace(result, ended="interrupted", notes=("rows were dropped",))
    assert "Interrupted: simulated numbers rest on the resamples drawn until then." in str(cut)
    assert "Note: rows were dropped." in str(cut)
    assert json.loads(cut.to_json())["ended"] == "interrupted"


def test_html_shows_the_cells_as_text(result):
    page = Page(result._repr_html_())
    of_tables = {"table", "thead", "tbody", "tr", "th", "td", "p"}
    card = {"div", "style", "span", "dl", "dt", "dd", "b", "details", "summary"}
    assert page.tags <= of_tables | card | {"svg", "g", "title", "path", "rect", "circle", "text"}
    rows = [[tables.with_minus(cell) for cell in row] for row in expected(result)]
    assert (page.rows, page.paragraphs[-1]) == (rows, result.recipe)


def test_markdown_shows_the_cells_as_text(result):
    """Read by another program, a Markdown parser that lets HTML through."""
    markdown_it = pytest.importorskip("markdown_it")
    page = Page(markdown_it.MarkdownIt("commonmark").enable("table").render(result.to_markdown()))
    assert page.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert _spaced(page.rows) == _spaced(expected(result))
    assert page.paragraphs[-1] == result.recipe


def _spaced(rows):
    return [[" ".join(cell.split()) for cell in row] for row in rows]


def test_latex_has_as_many_cells_and_no_live_characters(result):
    text = result.to_latex()
    tabulars = re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.S)
    assert len(tabulars) == len(result._tables())
    shown = []
    for sides, body in tabulars:
        assert [body.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1] * 3
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        for row in rows:
            assert len(re.findall(r"(?<!\\)&", row)) == len(sides) - 1
            bare = re.sub(
                r"\$(?:<|>|\||-|\\pm|\\le|\\cdot)\$|\\text\w+\{\}|\\[&%$#_{}]|\\\\$", "", row
            )
            assert not set(bare.replace("&", "")) & set("$%#_{}\\^~<>|−±·")
        shown += rows
    assert len(shown) == len(expected(result))
    assert text.splitlines()[0] == f"% {result.recipe}"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("estimate", 0.12345, "0.1235"),
        ("low", None, "–"),
        ("low", np.nan, "–"),
        ("adjusted", np.float64(1e-14), "< 0.001"),
        ("lr_pvalue", 0.25, "0.250"),
        ("predicted", np.array([0.5, 0.25]), "0.5000 0.2500"),
        ("slope_interval", (0.5, 1.5), "0.50 to 1.50"),
        ("outside", np.bool_(True), "yes"),
        ("count", np.int64(7), "7"),
        ("lens", "TopK(1)", "TopK(1)"),
        ("deviation", np.float64(0.25), "+0.2500"),
        ("deviation", -0.25, "-0.2500"),
    ],
)
def test_cells_are_written_by_what_they_are(name, value, text):
    assert tables.cell(name, value) == text
