"""What a notebook shows of results and predictions: verdict, numbers, picture, and the tables."""

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

import caltest as ct
from caltest.results import sketches
from caltest.results.rendering import DARK, LIGHT, MOST_NUMBERS
from tests.results.test_result_tables import EVIL, RESULTS

RNG = np.random.default_rng(3)
P = RNG.random(600)
Y = (RNG.random(600) < P**2).astype(int)

#: Results that are too many-sided, or too short, for a small picture.
NOT_DRAWN = {
    "JointTestResult",
    "ReliabilitySimplex",
    "Plan",
    "BandTest",
    "PromiseResult",
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    return RESULTS[request.param]()


def pictures(page):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", page, re.S)]


def test_a_card_is_well_formed_and_needs_nothing_else(result):
    page = result._repr_html_()
    ElementTree.fromstring(page.replace("&nbsp;", " "))
    assert not re.search(r"<script|<link|url\(|@import|\bon\w+=|\bsrc=|\bhref=|\bid=", page)
    assert len(page) < 60_000


def test_a_card_has_at_most_three_numbers_and_names_no_tag(result):
    page = result._repr_html_()
    assert page.count("<dt>") == min(len(result._card().numbers), MOST_NUMBERS)
    assert "<details><summary>All numbers</summary>" in page
    assert not any(evil in page for evil in EVIL[:1])


def test_results_are_drawn_with_words_for_every_mark(result):
    drawing = result._card().drawing
    if type(result).__name__ in NOT_DRAWN:
        pytest.skip("too many-sided, or too short, for a small picture")
    assert drawing, "draw it in _card, or name it in NOT_DRAWN"
    for picture in pictures(drawing):
        marks = [g for g in picture.iter("g") if g.get("role") == "img"]
        assert marks
        assert all(mark.find("title").text for mark in marks)
        assert picture.get("aria-label")


def test_marks_lie_within_the_picture(result):
    for picture in pictures(result._card().drawing):
        _, _, width, height = map(float, picture.get("viewBox").split())
        for circle in picture.iter("circle"):
            assert 0.0 <= float(circle.get("cx")) <= width
            assert 0.0 <= float(circle.get("cy")) <= height


@pytest.mark.parametrize(
    ("call", "tone", "words"),
    [
        (lambda: ct.audit(P, Y, rng=0), "bad", "MISCALIBRATED"),
        (lambda: ct.audit(P, Y, tolerance=0.6, rng=0), "good", "TOO LITTLE TO MATTER"),
        (lambda: ct.gate(P, Y, tolerance=0.01), "bad", "Gate failed"),
        (lambda: ct.gate(P, Y, tolerance=0.6), "good", "Gate passed"),
        (lambda: ct.gate(P, Y, tolerance=0.165), "ask", "Gate cannot tell"),
        (lambda: ct.compare(P, P**1.02, Y), None, None),
        (lambda: ct.equivalence_test(P, Y, tolerance=0.01), "ask", "cannot tell"),
        (lambda: ct.Monitor().update(P, Y), "bad", "alarm"),
        (lambda: ct.calibration_test(P, Y), "plain", "Test of calibration"),
    ],
)
def test_the_chip_is_the_verdict(call, tone, words):
    card = call()._card()
    if tone is not None:
        assert (card.tone, words in card.verdict) == (tone, True)
    assert card.headline


def test_numbers_of_a_test_are_those_it_prints():
    test = ct.calibration_test(P, Y)
    text = unescape(re.sub(r"<[^>]*>", " ", test._repr_html_().partition("<details>")[0]))
    assert f"ECE   {test.shown_estimate}   noise floor {test.shown_floor}" in text
    assert test.shown_p in text


def test_filled_dots_of_a_curve_are_bins_outside_their_bars():
    curve = ct.reliability_curve(P, Y, bins=10)
    (picture,) = pictures(curve._card().drawing)
    kinds = [circle.get("class") for circle in picture.iter("circle")]
    assert kinds == ["o" if outside else "i" for outside in curve.outside]


def test_a_picture_shows_at_most_so_many_rows_and_none_without_numbers():
    rows = [sketches.IntervalRow(f"row {j}", float(j)) for j in range(20)]
    (picture,) = pictures(sketches.forest(rows, "axis"))
    assert len([*picture.iter("circle")]) == sketches.ROWS_DRAWN
    assert sketches.forest([sketches.IntervalRow("a", float("nan"))], "axis") == ""


def test_words_have_contrast_in_both_modes():
    def luminance(colour):
        channels = [int(colour[j : j + 2], 16) / 255 for j in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    for mode in (LIGHT, DARK):
        colours = dict(pair.removeprefix("--").split(":") for pair in mode.split(";"))
        back = luminance(colours["bg"].replace("#fff", "#ffffff")[:7])
        for name in ("ink", "mut", "hot", "ok", "line"):
            light, dark = sorted((luminance(colours[name]), back), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (mode, name)


def test_documents_made_of_notebooks_have_tables(result):
    assert result._repr_markdown_() == result.to_markdown()
    assert result._repr_latex_() == result.to_latex()


def test_predictions_show_their_size_outcome_and_what_was_read():
    groups = np.array(list("ab"))[np.arange(600) % 2]
    data = ct.Predictions.of(P, Y, by=groups, clusters=np.arange(600) // 3, classes=EVIL[:2])
    page = data._repr_html_()
    ElementTree.fromstring(page)
    text = unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", page))
    assert "600 observations, 2 classes" in text
    assert f"{100 * Y.mean():.1f}" in text
    assert all(word in text for word in ("200 clusters", "subgroups", "a, b", EVIL[0]))
    assert "<script>" not in page


def test_predictions_of_many_classes_show_accuracy_and_confidence():
    probs = RNG.dirichlet(np.ones(4), 50)
    labels = RNG.integers(0, 4, 50)
    text = re.sub(r"<[^>]*>", " ", ct.Predictions.of(probs, labels)._repr_html_())
    assert "right" in text
    assert f"{100 * (probs.argmax(axis=1) == labels).mean():.1f}" in text
