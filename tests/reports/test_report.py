"""The report: right, complete, one file, and only text where names are anything."""

import builtins
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import binomtest

import caltest as ct
from caltest.reports.measures import WORDING, DataSummary, Measures
from caltest.reports.report import REPORT_PARTS

NASTY = "<script>alert(1)</script>"
RUN = {"n_resamples": 199, "rng": 1}


@pytest.fixture(scope="module")
def two():
    """A model of two classes that is too extreme, with groups."""
    rng = np.random.default_rng(5)
    p = rng.random(600)
    by = np.array(["north", "south", "east"])[rng.integers(0, 3, 600)]
    return ct.Predictions.of(p, rng.random(600) < 0.25 + 0.5 * p, by=by)


@pytest.fixture(scope="module")
def page():
    return ct.report(ct.examples.digits(), name="digits", **RUN)


@pytest.fixture(scope="module")
def nasty():
    """A report in which every name is an attack on a page."""
    rng = np.random.default_rng(6)
    probs = rng.dirichlet([1.0, 1.0, 1.0], 300)
    labels = (rng.random(300)[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    by = np.where(np.arange(300) < 150, NASTY, "a|b & $c$ \\input{x} `d` {{ e }} <% f %>")
    data = ct.Predictions.of(
        probs, labels, classes=[NASTY, "--> <!--", '"><img src=x onerror=alert(2)>'], by=by
    )
    return ct.report(data, name=NASTY, lens=ct.OneVsRest(0), **RUN)


class Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes, self.ids = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]


def test_everything_is_said(page):
    html = page.to_html().replace("\u00a0", " ")
    for said in ("MISCALIBRATED", "overconfident", "95 % interval", "Not examined", "digits"):
        assert said in html
    for section in page.sections:
        assert section.meaning
        assert section.title in html
    assert [section.key for section in page.sections] == [
        *("size", "lenses", "measures", "data", "curve", "band", "classes", "decomposition")
    ]
    assert all(s in " ".join(page.recipes) for s in page.audit.rows[0].test.recipe.split(" · "))


@pytest.fixture(scope="module")
def clinical(two):
    return ct.report(two, profile="clinical", **RUN)


@pytest.fixture(scope="module")
def found(clinical):
    """The results of a report, by their class."""
    return {type(r): r for section in clinical.sections for r in section.results}


def test_the_slope_and_its_sentence_are_those_of_the_cox_line(two, clinical, found):
    fit = ct.cox_recalibration(ct.Predictions.of(two.probs, two.labels))
    line = (fit.slope, *fit.slope_interval)
    audit, measures = clinical.audit, found[Measures]
    assert measures.find("slope") == line
    assert (audit.slope, audit.slope_low, audit.slope_high) == line
    assert measures.find("calibration-in-the-large")[0] == fit.in_the_large
    turn = f"{100.0 / (1.0 + np.exp(-fit.intercept / (1.0 - fit.slope))):.1f}"
    assert f"extreme: above {turn} % they are too high, below too" in audit.summary[1]


def test_the_ratio_has_the_exact_interval_of_the_number_of_events(two, found):
    ratio, low, high = found[Measures].find("O:E")
    assert ratio == ct.OERatio()(two.probs, two.labels)
    events, expected = int(two.labels.sum()), two.probs[:, 1].sum()
    exact = binomtest(events, 600).proportion_ci(0.95, "exact")
    assert (low, high) == pytest.approx((600 * exact.low / expected, 600 * exact.high / expected))


def test_measures_are_the_values_of_their_statistics(two, found):
    assert found[Measures].find("ICI (lowess)")[0] == ct.ICI()(two.probs, two.labels)
    score, low, high = found[Measures].find("Brier score")
    assert 0.5 * (low + high) == pytest.approx(score, abs=1e-12)


def test_intervals_of_scores_of_two_rows_end_at_0():
    page = ct.report([0.6, 0.2], [1, 0], **RUN)
    few = next(r for s in page.sections for r in s.results if isinstance(r, Measures))
    assert few.find("Brier score")[1] == 0.0
    assert few.find("log score")[1] > 0.0


def test_events_and_bounds_of_the_error_are_in_the_report(two, found):
    assert found[DataSummary].events == two.labels.sum()
    assert found[ct.ConfidenceIntervalResult].low > 0.0
    assert found[ct.BandTest].at_most > found[ct.BandTest].at_least


def test_subgroups_are_listed_by_the_error_that_is_certain(clinical):
    table = next(s for s in clinical.sections if s.key == "groups").results[0].subgroups
    errors = [test.certain_error(0.05 / 3) for test in table.tests]
    assert errors == sorted(errors, reverse=True)


def test_the_paragraph_of_a_clinical_report_names_the_slope(clinical):
    assert "calibration slope" in clinical.paragraph


@pytest.mark.parametrize("events", [0, 300])
def test_labels_all_alike_have_exact_limits_or_none(events):
    p = np.full(300, 0.995 if events else 0.004) + np.linspace(-1e-3, 1e-3, 300)
    report = ct.report(p, np.full(300, bool(events)), **RUN)
    measures = next(r for s in report.sections for r in s.results if isinstance(r, Measures))
    ratio, low, high = measures.find("O:E")
    assert low < 1.0 <= high
    assert low == 0.0 or high == pytest.approx(ratio)
    assert np.isnan(measures.find("Brier score")[1:]).all()


@pytest.mark.parametrize("profile", WORDING["profiles"])
@pytest.mark.slow
def test_profiles(two, profile, tmp_path):
    report = ct.report(two, profile=profile, also=[ct.HosmerLemeshow()], **RUN)
    keys = [section.key for section in report.sections]
    missing = ("classes", "recalibration", "where", "costs")
    expected = [k for k in WORDING["profiles"][profile]["parts"] if k not in missing]
    assert keys == [key for key in expected if key != "classes"]
    assert "HosmerLemeshow" in report.to_markdown()
    svg = re.findall(r"<svg.*?</svg>", report.to_html(), flags=re.DOTALL)
    assert len(svg) >= 2
    for picture in svg:
        ElementTree.fromstring(picture)


def test_the_verdict_knows_the_tolerance(two):
    report = ct.report(two, tolerance=0.01, **RUN)
    assert (report.verdict, report.tone) == ("miscalibrated, and it matters", "red")
    assert ct.report(two, tolerance=0.4, **RUN).tone == "green"
    assert ct.report([0.2, 0.8, 0.4] * 4, [0, 1, 0] * 4, **RUN).tone == "yellow"


def test_recalibrated_arrays_keep_the_design_of_the_rows(two):
    rows, after = two.take(np.arange(400)), 0.05 + 0.9 * two.probs[:400]
    page = ct.report(rows, recalibrated=after, clusters=np.arange(400) // 2, **RUN)
    assert not any("recalibrat" in reason for reason in page.unexamined)


def test_what_does_not_fit_is_left_out_by_name(two):
    weights = 1.0 + np.arange(two.n) % 3
    weighted = ct.report(two, weights=weights, **RUN)
    reasons = " ".join(weighted.unexamined)
    assert "Where the true curve lies: not known how to allow for weights" in reasons
    assert "ICI" not in reasons
    data = next(s.results[0] for s in weighted.sections if s.key == "data")
    assert data.effective_n == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert data.mean_outcome == pytest.approx((weights * two.labels).sum() / weights.sum())
    clustered = ct.report(two, clusters=np.repeat(np.arange(300), 2), by=None, **RUN)
    assert next(s.results[0] for s in clustered.sections if s.key == "data").n_clusters == 300
    assert not any(reason.startswith("dependence") for reason in clustered.unexamined)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.3] * 60, [0, 1] * 30),
        (np.linspace(0.0, 0.1, 60), [0] * 60),
        ([0.2], [0]),
        ([0.1, 0.2, 0.8, 0.9] * 5, [0, 0, 1, 1] * 5),
    ],
    ids=["equal", "no event", "one row", "separated"],
)
def test_what_cannot_be_told_of_odd_data_is_said(p, y):
    report = ct.report(p, y, profile="clinical", **RUN)
    parts = {s.key: s.results for s in report.sections}
    assert {"data", "measures", "curve", "lenses"} <= {*parts}
    assert parts["curve"][0].count.size <= 3  # bins of few rows
    assert any(reason.startswith("slope: ") for reason in report.unexamined)
    assert report.to_html().endswith("</html>\n")


@pytest.mark.filterwarnings("ignore::caltest.FewClustersWarning")
@pytest.mark.parametrize("few", [False, True])
def test_an_interval_that_leaves_out_what_the_verdict_does_not_reject_is_explained(few):
    rng = np.random.default_rng(5)
    p, by = rng.beta(2, 6, 400), rng.integers(0, 12, 400)
    y = rng.random(400) < 1 / (1 + np.exp(-(np.log(p / (1 - p)) + 0.28)))
    clusters = {"clusters": by} if few else {}
    found = ct.report(p, y, profile="clinical", **clusters, **RUN)
    low = next(s for s in found.sections if s.key == "measures").results[0].find("O:E")[1]
    assert (found.verdict, low > 1.0) == ("calibrated", True)
    assert "Note: the interval of O:E (1.0" in found.summary[-1]
    assert ("scatter of the observed clusters" in found.summary[-1]) == few
    assert found.summary[-1] in found.to_markdown()
    assert "weak evidence" not in " ".join(ct.report(p, rng.random(400) < p, **RUN).summary)


def test_an_interrupted_report_says_so(monkeypatch):
    whole = REPORT_PARTS["curve"]

    def cut(asked):
        (curve,) = whole(asked)
        return [replace(curve, ended="interrupted")]

    monkeypatch.setitem(REPORT_PARTS, "curve", cut)
    report = ct.report([0.2, 0.6, 0.7] * 20, [0, 1, 0] * 20, **RUN)
    assert report.ended == "interrupted"
    for page in (report.to_html(), report.to_markdown(), report.to_latex(), str(report)):
        assert "Interrupted: simulated numbers rest on the resamples drawn until then" in page


@pytest.mark.slow
def test_forms(page, tmp_path):
    for kind in ct.Report.endings:
        page.save(path := tmp_path / f"report{kind}")
        assert 2_000 < path.stat().st_size < 1_000_000
    again = ct.Report.from_json((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert again.to_markdown() == page.to_markdown()
    assert (again.to_latex(), again.verdict) == (page.to_latex(), page.verdict)
    assert "|" not in re.sub(r"(?m)^\|.*\|$|\\\|", "", page.to_markdown())
    assert page._repr_html_().count("<iframe") == 1


def test_html_needs_nothing_else_and_ids_are_unique(page):
    html = page.to_html()
    elements = Elements(html)
    assert not {"script", "link", "img", "iframe", "object"} & elements.names
    assert not [v for k, v in elements.attributes if k in ("src", "onload", "onclick")]
    links = [v for k, v in elements.attributes if k.endswith("href")]
    assert all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(elements.ids)
    assert len(set(elements.ids)) == len(elements.ids)
    assert "@import" not in html
    assert set(re.findall(r"url\((?!#)", html)) == set()


@pytest.mark.slow
def test_the_same_seed_writes_the_same_page(page):
    assert ct.report(ct.examples.digits(), name="digits", **RUN).to_html() == page.to_html()


def test_names_are_text_in_html_and_svg(nasty):
    html = nasty.to_html()
    elements = Elements(html)
    assert not {"script", "img"} & elements.names
    assert not [k for k, _ in elements.attributes if k.startswith("on")]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "{{ e }} &lt;% f %&gt;" in html
    for picture in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        tags = {e.tag.rpartition("}")[2] for e in ElementTree.fromstring(picture).iter()}
        assert tags <= {"svg", "g", "path", "text", "tspan", "defs", "use", "style", "clipPath",
                        "rect", "pattern", "metadata", "circle", "title"}  # fmt: skip
    shown = Elements(nasty._repr_html_())
    assert shown.names == {"iframe"}
    assert {k for k, _ in shown.attributes} == {"srcdoc", "width", "height"}


def test_names_are_text_in_markdown_and_latex(nasty):
    markdown, latex = nasty.to_markdown(), nasty.to_latex()
    assert "<script" not in markdown
    assert "<img" not in markdown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in markdown
    assert "a\\|b &amp; \\$c\\$" in markdown
    assert "<script" not in latex
    assert r"\input" not in latex
    assert r"$<$script$>$alert(1)$<$/script$>$" in latex
    assert r"\textbackslash{}input\{x\}" in latex


#: Opens all parts of a page, and names in its title what is wider than its box.
MEASURE = """<script>
document.querySelectorAll('details').forEach(d => d.open = true);
const wide = [];
const say = (e, why) => wide.push(`${why} ${e.tagName} ${e.textContent.slice(0, 40)}`);
document.querySelectorAll('main *:not(svg *)').forEach(e => {
  const scrolls = e.closest('.scroll');
  if (!scrolls && e.getBoundingClientRect().right > innerWidth + 1) say(e, 'beyond the page');
  if (e.matches('td, th, p, li') && e.scrollWidth > e.clientWidth + 1) say(e, 'cut');
  if (innerWidth > 1000 && e === scrolls && e.scrollWidth > e.clientWidth + 1) say(e, 'scrolls');
});
document.querySelectorAll('svg text').forEach(t => {
  const [inner, outer] = [t, t.closest('svg')].map(e => e.getBoundingClientRect());
  if (inner.left < outer.left - 1 || inner.right > outer.right + 1) say(t, 'off the picture');
});
top.document.title = wide.length + ' wide: ' + wide.join('; ') + ' of ' + innerWidth;
</script>"""


@pytest.fixture(scope="module")
def sites():
    """A clinical report of patients in hospitals with long names."""
    rng = np.random.default_rng(3)
    p = rng.beta(1.2, 6, 1500)
    names = [f"St Elsewhere hospital no. {k}, department of medicine" for k in range(12)]
    by = np.array(names)[rng.integers(0, 12, 1500)]
    labels = rng.random(1500) < 0.7 * p
    with pytest.warns(ct.errors.FewClustersWarning):
        return ct.report(p, labels, profile="clinical", clusters=by, by=by, **RUN)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["page", "nasty", "sites"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_its_box(name, request, tmp_path, width):
    html = request.getfixturevalue(name).to_html()
    assert _measured(html, MEASURE, width, tmp_path) == f"0 wide:  of {width}"


def _measured(html, script, width, tmp_path):
    """Return the title that a script gives to a page in Chromium, framed to a width in pixels."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    if browser is None:
        pytest.skip("there is no Chromium here")
    html = html.replace("</body>", f"{script}</body>")
    size = f'width="{width}" height="900" style="border: 0"'
    frame = f'<title></title><iframe srcdoc="{escape(html)}" {size}>'
    (tmp_path / "report.html").write_text(frame, encoding="utf-8")
    shown = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--window-size=1400,2000", "--hide-scrollbars",
         "--dump-dom", (tmp_path / "report.html").as_uri()],
        check=True, timeout=120, capture_output=True, text=True,
    )  # fmt: skip
    (title,) = re.findall("<title>(.*?)</title>", shown.stdout, flags=re.DOTALL)
    return title


#: Writes into the title how many scales of subgroups are seen: in the head, and below intervals.
SCALES_SEEN = """<script>
const seen = q => [...document.querySelectorAll(q)].filter(e => e.offsetParent !== null).length;
top.document.title = [seen('.people thead th.f'), seen('.people .own')].join(' ');
</script>"""


@pytest.mark.slow
def test_a_stacked_table_has_a_scale_below_every_interval(page, tmp_path):
    wide, narrow = (_measured(page.to_html(), SCALES_SEEN, w, tmp_path) for w in (1280, 390))
    assert wide == "1 0"
    assert narrow.endswith(f" {len(page.screen.parts)}")


@pytest.mark.slow
def test_a_page_opens_five_parts_and_folds_the_others(page, sites):
    for report in (page, sites):
        html = report.to_html()
        assert 2 <= len(report.opened) <= 5
        assert html.count("<details>") >= len(report.folded) + 2
        assert html.index("<svg") < html.index(report.opened[0].title)
        assert html.count("caltest 0.") <= 3  # the version, in no recipe but the last


def test_command_line(tmp_path, done, refused):
    file = tmp_path / "<script>alert(1)<script>.csv"
    rng = np.random.default_rng(3)
    p = rng.random(200).round(3)
    y = (rng.random(200) < p).astype(int)
    rows = "\n".join(f"{a},{b}" for a, b in zip(p, y, strict=True))
    file.write_text(f"p,y\n{rows}\n", encoding="utf-8")
    out = tmp_path / "page.html"
    asked = ("--profile", "clinical", "--n-resamples", 199, "--also", "HosmerLemeshow()")
    done("report", file, "-o", out, *asked)
    html = out.read_text(encoding="utf-8")
    assert "script" not in Elements(html).names
    assert "&lt;script&gt;alert(1)&lt;script&gt;.csv" in html
    assert "HosmerLemeshow" in html
    refused(".html, .md, .tex, .json", "report", "-o", tmp_path / "page.pdf")


def test_other_endings_and_a_missing_extra_are_said(page, tmp_path, monkeypatch):
    with pytest.raises(ct.StatisticError, match=r"\.html, \.md, \.tex or \.json"):
        page.save(tmp_path / "report.docx")
    found = builtins.__import__

    def without(name, *args, **options):
        if name == "jinja2":
            raise ImportError(name)
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    page.save(tmp_path / "report.json")
    with pytest.raises(ImportError, match=r"pip install 'caltest\[report\]'"):
        page.save(tmp_path / "report.html")


def test_an_audit_names_columns_that_it_has_not_searched():
    rng = np.random.default_rng(1)
    p, age = rng.uniform(0.1, 0.9, 200), rng.integers(20, 90, 200)
    table = {"p": p, "y": (rng.random(200) < p) * 1, "age": age, "case_id": age}
    report = ct.audit(table, "y", rng=0)
    assert "Not searched for segments: age, case_id. Run: segment_search(..., features='*')" in str(
        report
    )
    assert ct.audit(table, "y", features=["age"], rng=0).unsearched == ()
    (score,) = (row for row in report.rows if row.aspect == "shape")
    for sd, said in ((1.9, False), (2.1, True)):
        test = replace(score.test, estimate=score.test.null_mean + sd * score.test.null_std)
        loud = replace(report, rows=(replace(score, test=test),))
        assert ("A z above 2 sd may still be noise" in str(loud)) is said


@pytest.mark.slow
def test_a_follow_up_report_has_a_table_of_sites():
    rng = np.random.default_rng(6)
    p, site = rng.uniform(0.05, 0.5, 900), rng.choice(["Graz", "Lund"], 900)
    died = rng.exponential(-1.0 / np.log1p(-np.clip(p + 0.15 * (site == "Graz"), 0.0, 0.9)))
    left = rng.exponential(3.0, 900)
    seen = ct.Followup(np.minimum(died, left), died <= left, 1.0)
    page = ct.report(p, seen, by=site, profile="clinical", **RUN)
    (part,) = (section for section in page.sections if section.key == "sites")
    table = part.results[0]
    one = ct.cox_recalibration(
        p[site == "Graz"],
        ct.Followup(*(v[site == "Graz"] for v in (np.minimum(died, left), died <= left)), 1.0),
    )
    assert table.site == ("Graz", "Lund")
    assert (table.oe[0], table.slope_interval[0]) == (one.oe, one.slope_interval)
    assert table.oe_interval[0][0] > 1.0
    assert not any("site" in reason.lower() for reason in page.unexamined)
    assert "Graz" in page.to_html()
    assert type(page).from_json(page.to_json()).sections[0].key == page.sections[0].key
