"""The first screen: main finding by name, numbers of the verbs, pictures that need no scripts."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import one_hospital_too_low
from scipy.special import expit
from scipy.stats import norm

import caltest as ct
from caltest.reports.elements import PictureWords, _round, diagram
from caltest.reports.measures import FollowedSites
from caltest.reports.report import bins_of

RUN = {"n_resamples": 199, "rng": 1}


@pytest.fixture(scope="module")
def hospitals():
    return one_hospital_too_low(1500)


@pytest.fixture(scope="module")
def page(hospitals):
    return ct.report(
        hospitals, profile="clinical", event="died", called="patients", group="hospital",
        tolerance=0.05, model_version="2.1", author="A. Example", source="clinic.csv", **RUN
    )  # fmt: skip


def test_the_worst_subgroup_is_the_headline_in_the_users_words(page):
    assert page.screen.headline[0] == "Porto: risks are too low"
    assert page.screen.headline[1].endswith("died")


def test_at_most_four_numbers_and_none_twice(page):
    labels = [number.label for number in page.screen.numbers]
    assert len(labels) == len(set(labels)) <= 4


def test_subgroups_have_the_simultaneous_intervals_of_the_verb(page, hospitals):
    groups = ct.confidence_interval(hospitals, None, ct.MeanDifference()).subgroups
    expected = {n: (t.low, t.high) for n, t in zip(groups.names, groups.tests, strict=True)}
    assert {p.name: (p.low, p.high) for p in page.screen.parts} == expected
    assert page.screen.parts[0].name == "Porto"


def test_a_level_of_one_hospital_is_what_to_recalibrate(page):
    assert page.screen.next.startswith("Recalibrate: an intercept of its own for Porto, one slope")


def test_provenance_names_source_version_and_author(page):
    line = " · ".join(page.screen.provenance)
    assert line.startswith("clinic.csv · 95\u00a0% intervals")
    assert "version 2.1 · A. Example" in line


def test_no_lens_and_no_class_number_on_the_first_screen(page):
    html = page.to_html()
    first = re.sub(r"<[^>]*>", " ", html[html.index("<main>") : html.index("</figure>")])
    assert not re.search(r"OneVsRest|TopK|Class 1|ECE\(", first)


def test_the_views_are_switched_without_scripts(page):
    html = page.to_html()
    assert "<script" not in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert html.count('type="radio"') == 3
    assert html.count('class="view ') == 3


@pytest.mark.parametrize("view", ["probability", "difference", "logodds"])
def test_every_bin_has_a_title_and_a_role(page, view):
    words = PictureWords("Predicted P(died)", "Died", "died", "patients", tolerance=0.05)
    root = ElementTree.fromstring(diagram(page.curve, view, words))
    marks = [g for g in root.iter("g") if g.get("class") == "m"]
    assert len(marks) == len(page.curve.count)
    for mark, n in zip(marks, page.curve.count, strict=True):
        assert mark.get("role") == "img"
        assert f"{n} patients. Predicted " in mark.find("title").text


def boxes_of(svg):
    """Return (x0, y0, x1, y1) of each unrotated text, by the widths of its letters."""
    for text in ElementTree.fromstring(svg).iter("text"):
        if text.get("transform"):
            continue
        x, y, wide = float(text.get("x")), float(text.get("y")), 6.3 * len(text.text)
        left = {"middle": x - wide / 2.0, "end": x - wide}.get(text.get("text-anchor"), x)
        yield left, y - 10.0, left + wide, y + 2.0


@pytest.mark.parametrize("view", ["probability", "difference", "logodds"])
def test_words_of_a_picture_do_not_overlap(page, view):
    words = PictureWords("Predicted P(died)", "Died", "died", "patients", tolerance=0.05)
    boxes = list(boxes_of(diagram(page.curve, view, words)))
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]), (a, b)


def test_words_do_not_hide_dots_where_there_is_room():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 1.0, 3000)
    report = ct.report(p, (rng.random(3000) < p**1.8).astype(int), **RUN)
    words = PictureWords("Predicted", "Observed", "observed", "rows")
    root = ElementTree.fromstring(diagram(report.curve, "probability", words))
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("circle")]
    labels = [t for t in root.iter("text") if (t.get("class") or "").startswith("l")]
    assert labels
    for text in labels:
        x, y, wide = float(text.get("x")), float(text.get("y")), 7.0 * len(text.text)
        left = {"middle": x - wide / 2.0, "end": x - wide}.get(text.get("text-anchor"), x)
        assert not [d for d in dots if left < d[0] < left + wide and y - 10.0 < d[1] < y + 2.0]


def test_the_tolerance_is_named_where_no_dot_is(page):
    words = PictureWords("Predicted", "Observed", "observed", "rows", tolerance=0.05)
    root = ElementTree.fromstring(diagram(page.curve, "difference", words))
    (text,) = (t for t in root.iter("text") if "tolerance" in t.text)
    x, y, wide = float(text.get("x")), float(text.get("y")), 6.3 * len(text.text)
    left = x - wide if text.get("text-anchor") == "end" else x
    for dot in root.iter("circle"):
        across, up = float(dot.get("cx")), float(dot.get("cy"))
        assert not (left < across < left + wide and y - 10.0 < up < y + 2.0)


@pytest.mark.parametrize("extra", [0.0, 0.2])
def test_rates_have_the_same_ticks_where_bars_reach_below_0(extra):
    assert _round(-extra, 1.0, 0.0, 1.0)[2] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_rare_events_have_bins_of_equal_numbers_and_log_odds():
    rng = np.random.default_rng(2)
    p = rng.beta(0.4, 40.0, 2000)
    report = ct.report(p, (rng.random(2000) < p).astype(int), **RUN)
    assert report.curve.bins == "QuantileBins(10)"
    size = next(s for s in report.sections if s.key == "size").results[0]
    assert "QuantileBins(10)" in size.statistic  # the error beside the picture has its bins
    assert re.search(r'id="v2" class="v2" checked', report.to_html())
    assert "more than half" in report.caption
    band = next(section for section in report.sections if section.key == "band")
    assert band.picture.ax.get_xlim()[0] < -1.0  # log-odds


def test_usual_predictions_keep_bins_of_equal_width(hospitals):
    view = ct.inference.reliability.View.through(None, hospitals)
    assert bins_of(view) == 15


def test_follow_up_has_its_diagram_and_its_side():
    rng = np.random.default_rng(3)
    z = -1.2 + rng.standard_normal(800)
    hazard = -np.log1p(-expit(z + 0.8)) / 5.0
    died, left = rng.exponential(1.0 / hazard), rng.uniform(2.0, 12.0, 800)
    followup = ct.Followup(np.minimum(died, left), died <= left, 5.0)
    data = ct.Predictions.of(expit(z), followup)
    report = ct.report(data, profile="clinical", event="died", called="patients", **RUN)
    assert report.curve is not None
    assert report.curve.count.min() * report.curve.observed.min() > 1.0
    assert report.screen.headline[0] == "Risks are too low"
    assert "times as frequent as predicted" in report.screen.matters


def test_one_site_with_follow_up_is_recalibrated_alone():
    rng = np.random.default_rng(5)
    z, site = rng.standard_normal(1600) - 1.0, np.repeat(["Porto", "Ghent", "Turin", "Lyon"], 400)
    hazard = -np.log1p(-expit(z + 1.2 * (site == "Porto"))) / 5.0
    died, left = rng.exponential(1.0 / hazard), rng.uniform(2.0, 12.0, 1600)
    followup = ct.Followup(np.minimum(died, left), died <= left, 5.0)
    data = ct.Predictions.of(expit(z), followup, by=site)
    report = ct.report(data, profile="clinical", **RUN)
    assert report.screen.headline[0].startswith("Porto")
    assert report.screen.next.startswith("Recalibrate: an intercept of its own for Porto")
    sites = next(s for s in report.sections if s.key == "sites").results[0]
    assert sites.homogeneity[0] < 0.001 < sites.homogeneity[1]
    assert "all sites have one value" in report.to_html()


def test_homogeneity_of_two_sites_is_the_test_of_their_difference():
    ends = ((-0.196, 0.196), (0.5 - 0.392, 0.5 + 0.392))  # standard errors 0.1 and 0.2
    sites = FollowedSites(
        site=("a", "b"), count=(9, 9), oe=(1.0, 1.0), oe_interval=ends, in_the_large=(0.0, 0.5),
        in_the_large_interval=ends, slope=(0.0, 0.5), slope_interval=ends, lens="", level=0.95,
        n=18, n_classes=2,
    )  # fmt: skip
    levels, slopes, mean = sites.homogeneity
    assert levels == slopes == pytest.approx(2.0 * norm.sf(0.5 / np.hypot(0.1, 0.2)), rel=1e-3)
    assert mean == pytest.approx(0.5 * 0.2)  # weights 4 : 1


def test_several_classes_count_what_is_wrong_and_say_top_label():
    report = ct.report(ct.examples.digits("overfit"), called="images", **RUN)
    assert report.screen.headline[0] == "Overconfident"
    assert report.screen.matters.startswith("62 more of 900 images are wrong than the model claims")
    assert "Fit a temperature (about 1.55)" in report.screen.next
    assert "Brier score, top label" in report.to_html()


@pytest.mark.slow
def test_a_report_comes_back_from_json(page):
    again = ct.Report.from_json(page.to_json())
    assert again.screen == page.screen
    assert again.to_html() == page.to_html()


def test_without_a_tolerance_the_error_is_at_least_the_mean_difference():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.6, 1500)
    report = ct.report(p, (rng.random(1500) < p + 0.09).astype(int), **RUN)
    error = next(n for n in report.screen.numbers if n.label == "Calibration error")
    signed = next(n for n in report.screen.numbers if n.label.startswith("Observed −"))
    assert signed.low > error.low
    assert "at least" in error.note
    assert f"{100 * signed.low:.1f}" in error.note


@pytest.mark.slow
def test_a_wrong_class_is_told_by_predicted_and_observed_and_by_what_mends_it():
    rng = np.random.default_rng(7)
    z = rng.normal(0.0, 1.6, (3000, 4))
    p, true = (np.exp(w) / np.exp(w).sum(axis=1, keepdims=True) for w in (z, z - [0, 0, 0.9, 0]))
    labels = (true.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    data = ct.Predictions.of(p, np.array(["a", "b", "cat", "d"])[labels], ["a", "b", "cat", "d"])
    report = ct.report(data, **RUN)
    assert "cat" in report.screen.whom
    assert report.screen.whom.startswith(
        "4 of 4 classes are miscalibrated by their adjusted p; off on"
    )
    assert "shift of the log-probability of every class" in report.screen.next
    assert not report.parts_counted
    assert 'data-label="n"' not in report.to_html()
