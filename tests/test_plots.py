"""Pictures hold the computed numbers, and leave matplotlib as they found it."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import caltest as ct
from caltest import cli, plots
from caltest.inference import compare
from caltest.plots.scales import Scale
from caltest.reliability import reliability_curve
from caltest.reliability.difference import reliability_difference
from caltest.reliability.fits import reliability_fit
from caltest.reliability.sensitivity import bin_sensitivity
from caltest.reliability.simplex import SimplexGrid, reliability_simplex
from caltest.results import ReliabilityFit, format_p

DIGITS = ct.examples.digits()
GROUPS = ct.Partition([[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]])
FOUR = ct.Partition([[0, 1], [2, 3], [4, 5, 6], [7, 8, 9]])


def settings():
    """The settings as they are; looking "backend" up by its name would choose one."""
    return list(dict.items(mpl.rcParams))


def segments(lines):
    return np.array([path.vertices for path in lines.get_paths()])


@pytest.fixture(scope="module")
def curve():
    return reliability_curve(DIGITS, bins=10)


@pytest.fixture(scope="module")
def every():
    """One result for each kind of picture."""
    test = ct.calibration_test(DIGITS)
    pairs = [(ct.ECE(), ct.TopK(1)), (ct.ECE(), ct.OneVsRest(3))]
    joint = ct.joint_test(DIGITS, None, pairs, n_resamples=99, rng=1)
    run = {"n_resamples": 99, "rng": 1}
    return {
        "curve": reliability_curve(DIGITS, bins=10),
        "panels": reliability_curve(DIGITS, bins=10, lens=ct.TopK(2)),
        "fit": reliability_fit(DIGITS, **run),
        "triangle": reliability_simplex(DIGITS, lens=GROUPS, **run),
        "null": test,
        "joint": joint,
        "audit": ct.audit(DIGITS, n_resamples=999, rng=1),
        "sensitivity": bin_sensitivity(DIGITS, bins=[5, 10, 20]),
        "difference": reliability_difference(DIGITS, ct.examples.digits("best")),
        "pair": compare(DIGITS, ct.examples.digits("best"), names=("last", "best")),
    }


KINDS = (
    "curve", "panels", "fit", "triangle", "null", "joint",
    "audit", "sensitivity", "difference", "pair",
)  # fmt: skip


# --- what all pictures share ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_draw_on_axes_of_others(every, kind):
    figure = Figure(figsize=(6.5, 3.0), layout="constrained")
    ax = figure.add_subplot(1, 2, 1)
    other = figure.add_subplot(1, 2, 2)
    before = settings()
    picture = every[kind].plot(ax)
    figure.draw_without_rendering()
    assert picture.ax is ax
    assert picture.figure is figure
    assert not other.has_data()
    assert settings() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_fits_a_column_and_nothing_is_cut_off(every, kind):
    picture = every[kind].plot()
    assert picture.figure.get_figwidth() == 3.25
    picture.figure.draw_without_rendering()
    box = picture.figure.get_tightbbox()
    width, height = picture.figure.get_size_inches()
    assert box.x0 > -0.02
    assert box.y0 > -0.02
    assert box.x1 < width + 0.02
    assert box.y1 < height + 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_tick_labels_do_not_run_into_each_other(every, kind):
    figure = every[kind].plot().figure
    figure.draw_without_rendering()
    for axis in (axis for axes in figure.axes if axes.axison for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        shown = [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        shown = [label for label in shown if label.get_visible() and label.get_text()]
        boxes = [label.get_window_extent() for label in shown]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("joint", "audit")])
def test_the_recipe_stands_at_the_foot_unless_told_not_to(every, kind):
    recipe = every[kind].recipe
    picture, bare = every[kind].plot(), every[kind].plot(recipe=False)
    text = picture.artists["foot"].get_text()
    assert text.replace("\n", " ").replace("\u00a0", " ") == recipe == picture.recipe
    assert bare.artists["foot"] is None
    assert bare.recipe == recipe


def test_axes_without_a_grid_can_hold_panels(every):
    figure = Figure(figsize=(5.0, 4.0))
    for kind, style in (("panels", "deviation"), ("curve", "classical")):
        ax = figure.add_axes((0.1, 0.1, 0.8, 0.8))
        every[kind].plot(ax, style=style)
    figure.draw_without_rendering()


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_files_carry_the_recipe_and_repeat_to_the_byte(every, tmp_path, suffix):
    before = settings()
    files = [tmp_path / f"{j}.{suffix}" for j in range(2)]
    for file in files:
        every["curve"].plot().save(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert settings() == before
    if suffix == "svg":
        text = files[0].read_text(encoding="utf-8")
        assert every["curve"].recipe in text
        assert "confidence</text>" in text
    with pytest.raises(ct.StatisticError, match=r"saved as \.pdf"):
        every["curve"].plot().save(tmp_path / "x.bmp")


def test_neither_pyplot_nor_a_backend_is_chosen():
    code = (
        "import caltest as ct\nimport sys\n"
        "from caltest.reliability import reliability_curve\n"
        "picture = reliability_curve(ct.examples.digits()).plot()\n"
        "assert picture._repr_png_()[:4] == b'\\x89PNG'\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "import matplotlib; matplotlib.use('agg')\n"
        "from matplotlib import pyplot\n"
        "picture = reliability_curve(ct.examples.digits()).plot()\n"
        "assert pyplot.fignum_exists(picture.figure.number)\n"
        "assert picture._repr_png_() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_only_pictures_know_matplotlib():
    code = (
        "import caltest, caltest.reliability\n"
        "import caltest.plots, caltest.cli, sys\nassert 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_axes_must_be_axes(curve):
    with pytest.raises(ct.StatisticError, match="matplotlib axes"):
        curve.plot("left")
    with pytest.raises(ct.StatisticError, match="style must be"):
        curve.plot(style="modern")


# --- one dimension -------------------------------------------------------------------------------


def test_deviation_diagram_holds_the_numbers(curve):
    artists = curve.plot().artists
    points = np.column_stack([curve.predicted, curve.deviation])
    np.testing.assert_allclose(artists["crosses"].get_offsets(), points)
    bars = segments(artists["bars"])
    np.testing.assert_allclose(bars[:, :, 0], curve.predicted[:, None] * [1, 1])
    reach = 2.0 * max(artists["crosses"].axes.get_ylim())  # beyond, bars run out of the frame
    np.testing.assert_allclose(bars[:, 0, 1], np.maximum(curve.low - curve.predicted, -reach))
    np.testing.assert_allclose(bars[:, 1, 1], np.minimum(curve.high - curve.predicted, reach))
    shares = [column.get_height() for column in artists["histogram"]]
    np.testing.assert_allclose(shares, curve.count / curve.n)
    heavy = np.array(artists["crosses"].get_linewidths()) > 1.0
    np.testing.assert_array_equal(heavy, curve.outside)
    assert "ECE 0.0718" in artists["headline"].get_text()
    assert "p < 1e-12" in artists["headline"].get_text()


def test_classical_diagram_holds_the_numbers(curve):
    artists = curve.plot(style="classical").artists
    heights = [column.get_height() for column in artists["columns"]]
    np.testing.assert_allclose(heights, curve.observed)
    np.testing.assert_allclose([c.get_x() for c in artists["columns"]], curve.bin_low)
    gaps = [(gap.get_y(), gap.get_height()) for gap in artists["gaps"]]
    np.testing.assert_allclose(gaps, np.column_stack([curve.observed, -curve.deviation]))
    bars = segments(artists["bars"])
    np.testing.assert_allclose(bars[:, :, 1], np.column_stack([curve.low, curve.high]))
    means = [line.get_xdata()[0] for line in artists["means"]]
    accuracy = (DIGITS.probs.argmax(axis=1) == DIGITS.labels).mean()
    np.testing.assert_allclose(means, [DIGITS.probs.max(axis=1).mean(), accuracy])


def test_confidence_bars_stand_around_the_outcomes():
    curve = reliability_curve(DIGITS, bins=5, band="wilson")
    bars = segments(curve.plot(style="classical").artists["bars"])
    assert (bars[:, 0, 1] <= curve.observed).all()
    assert (bars[:, 1, 1] >= curve.observed).all()
    consistency = reliability_curve(DIGITS, bins=5).plot().artists["bars"].get_color()
    assert not np.allclose(curve.plot().artists["bars"].get_color(), consistency)


def test_no_bars_are_drawn_without_a_band():
    artists = reliability_curve(DIGITS, bins=5, band=None).plot().artists
    assert len(artists["bars"].get_paths()) == 0


def test_log_odds_axis(rng):
    p = 1 / (1 + np.exp(-rng.normal(-6.0, 1.5, 5000)))
    curve = reliability_curve(
        p, rng.random(5000) < p, lens=ct.OneVsRest(1), bins=ct.QuantileBins(10)
    )
    assert (curve.observed == 0).any()
    for style in ("deviation", "classical"):
        picture = curve.plot(style=style, axis="log-odds")
        offsets = np.ma.filled(picture.artists["crosses"].get_offsets(), np.nan)
        some = curve.observed > 0
        x, y = np.log(curve.predicted / (1 - curve.predicted)), np.log(curve.observed[some])
        y = y - np.log(1 - curve.observed[some])
        np.testing.assert_allclose(offsets[some, 0], x[some])
        np.testing.assert_allclose(offsets[some, 1], y - x[some] if style == "deviation" else y)
        below = picture.artists["edge"][1].get_offsets()
        np.testing.assert_allclose(below[:, 0], x[~some])
        labels = [tick.get_text() for tick in picture.ax.get_xticklabels()]
        assert {"0.001", "0.01"} <= set(labels)
        histogram = picture.artists["histogram"]
        assert sum(column.get_height() for column in histogram) == pytest.approx(1.0)


def test_ticks_of_log_odds_are_round():
    scale = Scale(log_odds=True)
    positions, labels = scale.ticks(-7.0, 7.0)
    assert labels == ["0.001", "0.01", "0.1", "0.5", "0.9", "0.99", "0.999"]
    np.testing.assert_allclose(positions, scale([float(label) for label in labels]))
    assert 2 <= len(scale.ticks(-1.0, 1.0)[1]) <= 7


def test_a_known_truth_is_drawn():
    model = ct.examples.GaussianMixture(1.0, 1.0)
    curve = reliability_curve(model.sample(2000, 1), lens=ct.OneVsRest(0), bins=10)
    for style in ("deviation", "classical"):
        picture = curve.plot(style=style, truth=model.calibration_function)
        x, y = picture.artists["truth"].get_data()
        expected = model.calibration_function(x) - (x if style == "deviation" else 0.0)
        np.testing.assert_allclose(y, expected)


@pytest.mark.parametrize("axis", ["probability", "log-odds"])
def test_a_component_has_a_panel(axis):
    curve = reliability_curve(DIGITS, lens=ct.TopK(2), bins=5)
    picture = curve.plot(axis=axis)
    scale = Scale(axis == "log-odds")
    assert [p.artists["name"].get_text() for p in picture.panels] == list(curve.names)
    for j, panel in enumerate(picture.panels):
        part = curve.of(j)
        points = np.column_stack(
            [scale(part.predicted), scale(part.observed) - scale(part.predicted)]
        )
        np.testing.assert_allclose(panel.artists["crosses"].get_offsets(), points)
    for limits in ("get_xlim", "get_ylim"):
        assert len({getattr(panel.ax, limits)() for panel in picture.panels}) == 1


def test_of_many_classes_the_worst_are_shown():
    curve = reliability_curve(DIGITS, lens=ct.Canonical(), bins=5)
    picture = curve.plot(most=4)
    worst = np.sort(np.argsort([t.pvalue for t in curve.tests])[:4])
    names = [panel.artists["name"].get_text() for panel in picture.panels]
    assert names == [curve.names[j] for j in worst]
    assert "4 of 10" in picture.recipe


@pytest.mark.parametrize("style", ["deviation", "classical"])
@pytest.mark.parametrize("probs", [[0.3], [0.0, 1.0], [1.0, 1.0, 1.0], [0.5, 0.5]])
def test_degenerate_data_can_be_drawn(probs, style):
    curve = reliability_curve(probs, [1] * len(probs), lens=ct.OneVsRest(1))
    for axis in ("probability", "log-odds"):
        curve.plot(style=style, axis=axis).figure.draw_without_rendering()


# --- curves without bins -------------------------------------------------------------------------


@pytest.mark.parametrize("fit", ["isotonic", "smooth"])
def test_fitted_curve_holds_the_numbers(fit):
    curve = reliability_fit(DIGITS, fit=fit, n_resamples=99, rng=1)
    for style, shift in (("classical", 0.0), ("deviation", curve.predicted)):
        artists = curve.plot(style=style).artists
        x, y = artists["curve"].get_data()
        np.testing.assert_allclose(x, curve.predicted)
        np.testing.assert_allclose(y, curve.fitted - shift)
        corners = artists["band"].get_paths()[0].vertices
        for side in (curve.low, curve.high):
            points = np.column_stack([curve.predicted, side - shift])
            distance = np.abs(corners[:, None] - points).sum(axis=2).min(axis=0)
            np.testing.assert_allclose(distance, 0.0, atol=1e-12)
    assert str(ReliabilityFit.from_json(curve.to_json())) == str(curve)


def test_isotonic_curve_against_the_min_max_formula(rng):
    p = np.round(rng.random(300), 2)
    y = rng.random(300) < p**2
    curve = reliability_fit(p, y, lens=ct.OneVsRest(1), band=None, n_resamples=9, rng=1)
    at = np.unique(p)
    hits = np.cumsum([0, *(y[p == v].sum() for v in at)])
    rows = np.cumsum([0, *((p == v).sum() for v in at)])
    fitted = [
        max(
            min((hits[k] - hits[j]) / (rows[k] - rows[j]) for k in range(i + 1, at.size + 1))
            for j in range(i + 1)
        )
        for i in range(at.size)
    ]
    expected = np.interp(curve.predicted, at, fitted)
    np.testing.assert_allclose(curve.fitted, expected, atol=1e-12)
    assert np.isnan(curve.low).all()


def test_smooth_curve_against_the_statistic(rng):
    from caltest.statistics.smooth import smooth_curve

    data = ct.examples.GaussianMixture(0.5, -2.0).sample(400, rng)
    curve = reliability_fit(data, lens=ct.OneVsRest(0), fit="smooth", band=None, n_resamples=9)
    reference = smooth_curve(ct.OneVsRest(0)(data))
    expected = np.interp(curve.predicted, reference.predicted, reference.observed)
    np.testing.assert_allclose(curve.fitted, np.clip(expected, 0, 1), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("fit", ["isotonic", "smooth"])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_bands_hold_the_curves_of_calibrated_models(rng, fit, simultaneous):
    covered, trials = [], 40
    for r in range(trials):
        data = ct.examples.GaussianMixture().sample(120, rng)
        curve = reliability_fit(
            data,
            lens=ct.OneVsRest(0),
            fit=fit,
            simultaneous=simultaneous,
            points=60,
            n_resamples=39,
            rng=r,
        )
        inside = (curve.fitted >= curve.low - 1e-12) & (curve.fitted <= curve.high + 1e-12)
        covered.append(inside.all() if simultaneous else inside.mean())
    # 40 data sets at 0.9: four standard errors are 0.19, and less for averages over a curve.
    assert np.mean(covered) >= 0.9 - (0.19 if simultaneous else 0.06)


# --- the simplex ---------------------------------------------------------------------------------


def test_triangle_holds_the_numbers():
    simplex = reliability_simplex(DIGITS, lens=GROUPS, n_resamples=99, rng=1)
    picture = simplex.plot(min_count=6)
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    arrows = picture.artists["arrows"]
    kinds = {
        "significant": simplex.significant,
        "few": ~simplex.significant & (simplex.count < 6),
        "chance": ~simplex.significant & (simplex.count >= 6),
    }
    assert sum(rows.sum() for rows in kinds.values()) == simplex.count.size
    for kind, rows in kinds.items():
        tails = np.column_stack([arrows[kind].X, arrows[kind].Y])
        heads = tails + np.column_stack([arrows[kind].U, arrows[kind].V])
        np.testing.assert_allclose(tails, simplex.predicted[rows] @ corners)
        np.testing.assert_allclose(heads, simplex.observed[rows] @ corners, atol=1e-12)
    np.testing.assert_allclose(picture.artists["cells"].get_array(), simplex.count / simplex.n)
    labels = [text.get_text() for text in picture.artists["corners"]]
    assert labels == ["0, 1, 2", "3, 4, 5", "6, 7, 8, 9"]


@pytest.mark.parametrize("m", [1, 5, 10])
def test_cells_tile_the_triangle(rng, m):
    probs = rng.dirichlet(np.ones(3), 60 * m * m)
    simplex = reliability_simplex(
        probs, rng.integers(0, 3, len(probs)), bins=SimplexGrid(m), n_resamples=1
    )
    assert simplex.count.size == m * m
    for path in simplex.plot().artists["cells"].get_paths():
        corners = np.unique(path.vertices.round(9), axis=0)
        assert len(corners) == 3
        (ax, ay), (bx, by), (cx, cy) = corners
        area = 0.5 * abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
        assert area == pytest.approx(0.5 * np.sqrt(0.75) / m**2, rel=1e-6)


def test_pictures_of_the_wrong_simplex_are_refused():
    four = reliability_simplex(DIGITS, lens=FOUR, bins=3, n_resamples=99, rng=1)
    with pytest.raises(ct.StatisticError, match="three corners, not 4: 0, 1, 2, 3, 4, 5, 6"):
        four.plot()


# --- nulls, numbers of bins, several models ------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "lens", "null"),
    [
        (ct.ECE(), ct.TopK(1), "exact"),
        (ct.ECE(), ct.TopK(1), ct.RedrawLabels()),
        (ct.MCE(), ct.TopK(1), "exact"),
        (ct.Spiegelhalter(), ct.TopK(1), "asymptotic"),
    ],
)
def test_null_picture_holds_the_law(statistic, lens, null):
    result = ct.calibration_test(
        ct.examples.digits("best"), None, statistic, lens=lens, null=null, n_resamples=999, rng=2
    )
    artists = result.plot().artists
    heights = np.array([column.get_height() for column in artists["columns"]])
    assert 0.995 < heights.sum() <= 1.0 + 1e-9
    assert artists["estimate"].get_xdata()[0] == result.estimate
    assert artists["floor"].get_xdata()[0] == result.null_mean
    red = [c.get_facecolor()[0] > 2 * c.get_facecolor()[2] for c in artists["columns"]]
    assert heights[red].sum() == pytest.approx(result.pvalue, abs=0.004)


def test_null_picture_of_few_atoms_shows_each():
    result = ct.calibration_test([0.8] * 30, [1] * 18 + [0] * 12, lens=ct.OneVsRest(1))
    columns = result.plot().artists["columns"]
    centres = [c.get_x() + 0.5 * c.get_width() for c in columns]
    np.testing.assert_allclose(np.array(centres)[:5], np.arange(5) / 30, atol=1e-9)
    red = [c.get_height() for c in columns if c.get_facecolor()[0] > 2 * c.get_facecolor()[2]]
    assert sum(red) == pytest.approx(result.pvalue, abs=1e-5)


def test_a_result_without_its_law_cannot_be_drawn():
    result = ct.calibration_test(DIGITS)
    with pytest.raises(ct.StatisticError, match="run the test again"):
        type(result).from_json(result.to_json()).plot()


def test_a_result_without_a_picture_says_so():
    with pytest.raises(ct.StatisticError, match="no picture of a ConfidenceIntervalResult: print"):
        ct.confidence_interval(DIGITS, rng=1, n_resamples=99).plot()


@dataclass(frozen=True, repr=False)
class Shift(ct.Statistic):
    """A user's own statistic that looks at both sides."""

    essential = 0

    def given(self, data):
        return ShiftOf(data, two_sided=True)


class ShiftOf(ct.Prepared):
    def __call__(self, labels):
        return float(((labels == 0) - self.data.probs[:, 0]).mean())


def test_both_sides_of_a_two_sided_law_are_red():
    data = ct.examples.GaussianMixture().sample(200, 3)
    result = ct.calibration_test(data, None, Shift(), lens=ct.OneVsRest(0), n_resamples=999, rng=1)
    assert result.two_sided
    columns = result.plot().artists["columns"]
    red = [c for c in columns if c.get_facecolor()[0] > 2 * c.get_facecolor()[2]]
    assert {c.get_x() > 0 for c in red} == {True, False}
    assert sum(c.get_height() for c in red) == pytest.approx(result.pvalue, abs=0.02)


@pytest.mark.parametrize(
    ("lens", "whole"),
    [
        (None, True),
        (ct.OneVsRest(0), True),
        (ct.Canonical(), True),
        (ct.Partition([[0], [1]]), True),
        (ct.TopK(1), False),
    ],
)
def test_pictures_of_an_event_show_all_probabilities(lens, whole):
    data = ct.examples.GaussianMixture().sample(300, 1)
    for curve in (
        reliability_curve(data, lens=lens, bins=5),
        reliability_fit(data, lens=lens, band=None, n_resamples=9, rng=1),
    ):
        ax = curve.plot(style="deviation").ax
        low, high = ax.get_xlim()
        assert ((low, high) == (0.0, 1.0)) is whole
        assert (ax.get_xlabel() == "confidence") is not whole


def test_shares_stand_on_the_bins_where_these_are_equally_wide():
    for bins, own in ((ct.EdgeBins([0.25, 0.5, 0.75]), True), (ct.QuantileBins(4), False)):
        curve = reliability_curve(DIGITS, bins=bins)
        lefts = [c.get_x() for c in curve.plot().artists["histogram"]]
        assert (lefts == list(curve.bin_low)) is own


def test_sensitivity_picture_holds_the_numbers(every):
    table = every["sensitivity"]
    picture = table.plot()
    for name, values in (("estimate", table.estimate), ("floor", table.null_mean)):
        np.testing.assert_allclose(picture.artists[name].get_data(), [table.size, values])
    (above,) = picture.panels
    shown = np.maximum(table.pvalue, 1e-12)
    np.testing.assert_allclose(above.artists["pvalue"].get_data(), [table.size, shown])


def test_audit_picture_holds_the_numbers(every):
    report = every["audit"]
    artists = report.plot().artists
    offsets = artists["estimates"].get_offsets()
    expected = [row.test.excess / row.test.null_std for row in report.rows]
    np.testing.assert_allclose(offsets[:, 0], expected)
    assert offsets[0, 1] > offsets[-1, 1]
    assert artists["labels"][0].get_text() == f"p = {format_p(report.rows[0].adjusted)}"


def test_comparison_holds_the_numbers_and_crosses_no_gap():
    p = np.array([0.05] * 40 + [0.15] * 40 + [0.95] * 40)
    curves = [
        reliability_curve(q, np.arange(120) % 3 == 0, lens=ct.OneVsRest(1), bins=10)
        for q in (p, p * 0.9 + 0.02)
    ]
    artists = plots.comparison(curves, names=["a", "b"]).artists
    for curve, markers, lines in zip(curves, artists["markers"], artists["lines"], strict=True):
        points = np.column_stack([curve.predicted, curve.deviation])
        np.testing.assert_allclose(markers.get_offsets(), points)
        np.testing.assert_allclose(segments(lines), [points[:2]])  # no line to the last bin
    texts = [text.get_text() for text in artists["legend"].get_texts()]
    assert texts[0].startswith("a: ECE 0.")


def test_comparison_of_different_questions_is_refused(curve):
    with pytest.raises(ct.StatisticError, match="same lens"):
        plots.comparison([curve, reliability_curve(DIGITS, bins=5)])
    with pytest.raises(ct.StatisticError, match="2 to 5 curves"):
        plots.comparison([curve])


def test_difference_picture_holds_the_numbers(every):
    difference = every["difference"]
    artists = difference.plot().artists
    points = np.column_stack([difference.predicted, difference.difference])
    np.testing.assert_allclose(artists["markers"].get_offsets(), points)
    bars = segments(artists["bars"])
    np.testing.assert_allclose(bars[:, :, 1], np.column_stack([difference.low, difference.high]))


def test_differences_hold_the_numbers():
    models = {"last": DIGITS.probs, "best": ct.examples.digits("best").probs}
    result = compare(*models.values(), DIGITS.labels, names=tuple(models))
    artists = result.plot().artists
    np.testing.assert_allclose(artists["differences"].get_offsets(), [[result.difference, 0.0]])
    interval = segments(artists["intervals"])
    np.testing.assert_allclose(interval[0, :, 0], [result.low, result.high])
    assert artists["labels"][0].get_text().startswith("p ")


# --- speed and the command line ------------------------------------------------------------------


def test_a_million_rows_are_drawn_in_two_seconds(rng, tmp_path):
    p = rng.random(1_000_000)
    curve = reliability_curve(p, rng.random(p.size) < p, lens=ct.OneVsRest(1))
    start = time.process_time()
    curve.plot().save(tmp_path / "million.png")
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("kind", ["deviation", "smooth", "simplex", "bins", "null", "difference"])
def test_command_line_writes_a_picture_and_prints_the_numbers(capsys, tmp_path, kind):
    file, out = tmp_path / "model.npz", tmp_path / f"{kind}.png"
    data = ct.examples.GaussianMixture(0.3, -2.0).sample(300, 1)
    probs = np.column_stack([0.5 * data.probs[:, 0], data.probs[:, 1], 0.5 * data.probs[:, 0]])
    np.savez(file, probs=probs, labels=data.labels)
    more = ["--against", file] if kind == "difference" else []
    with pytest.raises(SystemExit) as stop:
        cli.main([str(a) for a in ("plot", file, "--kind", kind, "-o", out, *more)])
    assert stop.value.code == 0
    assert out.stat().st_size > 5000
    assert "caltest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.gif"], "a picture ends in .pdf"),
        (["-o", "x.pdf", "--kind", "difference"], "need --against"),
        (["-o", "x.pdf", "--bins", "ten"], "there is no ten"),
        (["-o", "nowhere/x.pdf"], "there is no folder nowhere"),
    ],
)
def test_command_line_says_what_is_wrong(capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        cli.main(["plot", *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
