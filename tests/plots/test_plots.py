"""Pictures hold the computed numbers, and leave matplotlib as they found it."""

import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

import caltest as ct
from caltest import plots, results
from caltest.inference import compare, reliability_curve
from caltest.inference.diagrams import bin_sensitivity, reliability_fit, reliability_simplex
from caltest.inference.reliability import reliability_difference
from caltest.plots import chart as marks
from caltest.plots import lines as numbers
from caltest.plots.chart import Scale
from caltest.plots.panels import TETRAHEDRON
from caltest.results import Finding, Record, Result
from caltest.results.rendering import p_is

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
    pairs = [(ct.ECE(), ct.TopK(1)), (ct.ECE(), ct.OneVsRest(3))]
    run, best = {"n_resamples": 99, "rng": 1}, ct.examples.digits("best")
    return {
        "curve": reliability_curve(DIGITS, bins=10),
        "panels": reliability_curve(DIGITS, bins=10, lens=ct.TopK(2)),
        "fit": reliability_fit(DIGITS, **run),
        "triangle": reliability_simplex(DIGITS, lens=GROUPS, **run),
        "null": ct.calibration_test(DIGITS),
        "joint": ct.joint_test(DIGITS, pairs=pairs, **run),
        "audit": ct.audit(DIGITS, n_resamples=999, rng=1),
        "sensitivity": bin_sensitivity(DIGITS, bins=[5, 10, 20]),
        "difference": reliability_difference(DIGITS, best),
        "pair": compare(DIGITS, best, names=("last", "best")),
        "classes": reliability_curve(DIGITS, bins=8, lens=ct.Canonical()),
        "beyond": reliability_curve(rare_events(), lens=ct.OneVsRest(0), bins=20),
        "tetrahedron": reliability_simplex(DIGITS, lens=FOUR, bins=3, **run),
        "interval": ct.confidence_interval(DIGITS, **run),
        "CORP": ct.corp_decomposition(DIGITS),
        "Brier": ct.brier_decomposition(DIGITS),
        "Cox": ct.cox_recalibration(DIGITS),
        "equivalence": ct.equivalence_test(DIGITS, tolerance=0.1, **run),
        "gate": ct.gate(DIGITS, against=best, tolerance=0.1, margin=0.05, rng=1),
        "plan": ct.plan(DIGITS, statistic=ct.Kuiper(), n_datasets=100, rng=1),
        "formula": ct.plan(ct.planning.LogisticNormal(0.1, 0.75), statistic="slope", width=0.4),
        "groups": reliability_curve(DIGITS, bins=5, by=DIGITS.labels % 3),
        "failed": ct.gate(DIGITS, tolerance=0.01, rng=1),
        "length": ct.plan(DIGITS, width=0.05, n_datasets=100, rng=1),
        **evidence(),
        "forest": ct.calibration_test(DIGITS, by=DIGITS.labels % 3, **run).subgroups,
        "sites": ct.meta_analysis(DIGITS, by=DIGITS.labels % 3),
        "grades": ct.grade_tests(
            {"n": [120, 3000, 80], "events": [0, 41, 20], "probability": [3e-4, 0.01, 0.2]}
        ),
    }


def evidence():
    """Monitors of rows, of dated rows, and of two forecasters."""
    data = ct.examples.GaussianMixture(0, -2.6).sample(2000, rng=1)
    p = data.probs[:, 1]
    sharper = p**2 / (p**2 + (1 - p) ** 2)
    dates = np.datetime64("2026-01-01") + np.arange(2000) // 20
    return {
        "monitor": ct.Monitor(alpha=0.01).update(data),
        "dated": ct.Monitor().update(p[:500], data.labels[:500], time=dates[:500]),
        "forecasters": ct.ComparisonMonitor().update(p, sharper, data.labels),
    }


def rare_events():
    """Outcomes as often as predicted, and one row of 2000 far away that is not."""
    p = np.tile([0.1, 0.3, 0.5, 0.7, 0.9], 400)
    labels = (np.arange(2000) // 5 % 10 >= np.round(10 * p)).astype(int)
    p[-1], labels[-1] = 0.03, 0
    return ct.Predictions.of(np.column_stack([p, 1 - p]), labels)


KINDS = (
    "curve", "panels", "fit", "triangle", "null", "joint",
    "audit", "sensitivity", "difference", "pair",
    "beyond", "tetrahedron", "interval", "CORP", "Brier", "Cox",
    "equivalence", "gate", "plan", "formula", "groups", "forest", "sites", "grades",
    "failed", "length", "monitor", "dated", "forecasters",
)  # fmt: skip


# --- what all pictures share ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_pictures_draw_on_axes_of_others(every, kind):
    figure = Figure(figsize=(6.5, 3.0), layout="constrained")
    ax = figure.add_subplot(1, 2, 1)
    other = figure.add_subplot(1, 2, 2)
    before = settings()
    picture = every[kind].plot(ax)
    figure.draw_without_rendering()
    assert (picture.ax, picture.figure) == (ax, figure)
    assert (other.has_data(), settings()) == (False, before)


@pytest.fixture(scope="module")
def drawn(every):
    """Every picture, laid out once."""
    with mpl.rc_context({"figure.max_open_warning": 0}):  # where pyplot is loaded, it keeps them
        pictures = {kind: result.plot() for kind, result in every.items()}
    for picture in pictures.values():
        picture.figure.draw_without_rendering()
    return pictures


@pytest.mark.parametrize("kind", [*KINDS, "classes"])
@pytest.mark.slow
def test_a_picture_fits_a_column_and_nothing_is_cut_off(drawn, kind):
    figure = drawn[kind].figure
    assert figure.get_figwidth() == 3.25
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0) > -0.02
    assert max(box.x1 - width, box.y1 - height) < 0.02


def words(figure):
    """All text on the paper: matplotlib keeps spare labels of ticks outside the axes."""
    spare = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                out = not low <= tick.get_loc() <= high or not ax.axison
                spare |= {tick.label1, tick.label2} if out else {tick.label2}
    texts = set(figure.findobj(Text)) - spare
    return [text for text in texts if text.get_visible() and text.get_text()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "classes"])
def test_print_is_large_enough_and_words_do_not_overlap(drawn, kind):
    texts = words(drawn[kind].figure)
    assert min(text.get_fontsize() for text in texts) >= 7.0
    boxes = [text.get_window_extent() for text in texts]
    for (one, a), (other, b) in combinations(zip(texts, boxes, strict=True), 2):
        across, along = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(across, along) < 1.0, (one.get_text(), other.get_text())


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_key_and_it_says_nothing_twice(drawn, kind):
    picture = drawn[kind]
    keys = [child for ax in picture.figure.axes for child in ax.findobj(Legend)]
    assert keys == [picture.artists["key"]]
    said = [text.get_text() for text in keys[0].get_texts()]
    assert len(set(said)) == len(said) > 0


def test_numbers_of_bins_are_round_and_a_level_is_written_beside_its_rule(drawn):
    assert list(drawn["sensitivity"].ax.get_xticks()) == [5, 10, 20]
    (panel,) = drawn["sensitivity"].panels
    assert [t.get_position()[1] for t in panel.ax.texts if t.get_text() == "0.05"] == [0.05]


@pytest.mark.parametrize("kind", ["monitor", "dated", "forecasters"])
def test_the_alarm_line_is_labelled_at_its_height(drawn, kind):
    artists = drawn[kind].artists
    height, label = artists["threshold"].get_ydata()[0], artists["threshold label"]
    assert label.get_text() == f"alarm at e-value {10**height:.4g}"
    box = label.get_window_extent()
    line = label.axes.transData.transform((0.0, height))[1]
    assert -1.0 < box.y0 - line < 8.0


@pytest.mark.parametrize(("kind", "said"), [("gate", "? cannot tell"), ("failed", "◆ failed")])
def test_a_gate_says_its_verdict_with_a_symbol_and_labels_its_limits(every, drawn, kind, said):
    artists, checks = drawn[kind].artists, every[kind].checks
    assert artists["headline"].get_text() == said
    labels = [label.get_text() for label in artists["limit labels"]]
    assert labels == [f"limit {check.limit:g}" for check in checks]
    if len(checks) > 1:
        verdicts = [label.get_text()[2:] for label in artists["labels"]]
        assert verdicts == [check.verdict.value for check in checks]


@pytest.mark.parametrize("kind", ["plan", "formula", "length"])
def test_a_plan_shows_its_target_points_and_monte_carlo_interval(every, drawn, kind):
    plan, picture = every[kind], drawn[kind]
    goal = plan.power if plan.width is None else plan.width
    assert picture.artists["goal label"].get_text() == f"target {goal:g}"
    assert picture.artists["n"].get_xdata()[0] == plan.n
    np.testing.assert_allclose(
        picture.artists["points"].get_offsets(), plan.points or [(plan.n, goal)]
    )
    assert ("error" in picture.artists) == (plan.method == "simulation")
    if plan.method == "simulation":
        np.testing.assert_allclose(ends(picture.artists["error"]), [[plan.low, plan.high]])
    low, high = picture.ax.get_xlim()
    assert sum(low <= tick <= high for tick in picture.ax.get_xticks()) >= 2


@pytest.mark.parametrize(("low", "high"), [(3, 9), (76, 250), (160, 5600), (1, 10**6), (980, 1020)])
def test_ticks_of_numbers_of_rows_are_round_and_few(low, high):
    ticks = numbers._round_numbers(low, high)
    assert 1 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)


def test_the_hidden_edge_of_the_tetrahedron_is_dashed_and_near_edges_are_heavier(drawn):
    edges = [line for line in drawn["tetrahedron"].ax.get_lines() if len(line.get_xdata()) == 2]
    dashed = [line for line in edges if line.is_dashed()]
    assert (len(edges), len(dashed)) == (6, 1)
    np.testing.assert_allclose(np.column_stack(dashed[0].get_data()), TETRAHEDRON[[0, 2]])
    assert dashed[0].get_linewidth() < min(e.get_linewidth() for e in edges if e not in dashed)


#: Answers to yes or no, about rows or a curve that have pictures of their own.
OF_NONE = {results.BandTest}


def test_every_result_has_a_picture():
    kinds = {
        kind
        for kind in Record.kinds.values()
        if issubclass(kind, Result) and not kind.__subclasses__()
        if not kind.__module__.startswith("caltest.reports")  # a page, and tables of it
    }
    assert {kind for kind in kinds if not kind.plotter} == OF_NONE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_the_recipe_stands_at_the_foot_unless_told_not_to(every, kind):
    recipe = every[kind].recipe
    picture, bare = every[kind].plot(), every[kind].plot(recipe=False)
    text = picture.artists["foot"].get_text()
    assert text.replace("\n", " ").replace("\u00a0", " ") == recipe == picture.recipe
    assert (bare.artists["foot"], bare.recipe) == (None, recipe)


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_files_carry_the_recipe_and_repeat_to_the_byte(every, tmp_path, suffix):
    before = settings()
    files = [tmp_path / f"{j}.{suffix}" for j in range(2)]
    for file in files:
        every["curve"].plot().save(file)
    assert (files[0].read_bytes(), settings()) == (files[1].read_bytes(), before)
    if suffix == "svg":
        text = files[0].read_text(encoding="utf-8")
        assert every["curve"].recipe in text
        assert "Confidence</text>" in text


@pytest.mark.slow
def test_neither_pyplot_nor_a_backend_is_chosen():
    code = (
        "import caltest as ct\nimport sys\n"
        "from caltest.inference import reliability_curve\n"
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


# --- one dimension -------------------------------------------------------------------------------


def filled(points):
    return np.array(points.get_facecolors())[:, 0] < 0.9


def test_deviation_diagram_holds_the_numbers(curve):
    artists = curve.plot().artists
    points = np.column_stack([curve.predicted, curve.deviation])
    np.testing.assert_allclose(artists["marks"].get_offsets(), points)
    bars = segments(artists["bars"])
    np.testing.assert_allclose(bars[:, :, 0], curve.predicted[:, None] * [1, 1])
    reach = 3.0 * max(artists["marks"].axes.get_ylim())  # beyond, bars run out of the frame
    np.testing.assert_allclose(bars[:, 0, 1], np.maximum(curve.low - curve.predicted, -reach))
    np.testing.assert_allclose(bars[:, 1, 1], np.minimum(curve.high - curve.predicted, reach))
    shares = [column.get_height() for column in artists["histogram"]]
    np.testing.assert_allclose(shares, curve.count / curve.n)
    np.testing.assert_array_equal(filled(artists["marks"]), curve.outside)
    large = curve.count >= 0.3 * curve.count.max()
    areas = artists["marks"].get_sizes()
    np.testing.assert_allclose(areas[large] / areas.max(), curve.count[large] / curve.count.max())
    assert areas.min() >= 0.3 * areas.max()
    assert "ECE 0.0718" in artists["headline"].get_text()
    assert "p < 0.001" in artists["headline"].get_text()


def test_a_few_rows_far_away_do_not_flatten_the_others(every):
    """The axis is that of the other 1999 rows; the last one is at its edge, with its value."""
    curve = every["beyond"]
    picture = curve.plot()
    top = picture.ax.get_ylim()[1]
    near = curve.count > 1
    sides = [getattr(curve, side)[near] - curve.predicted[near] for side in ("low", "high")]
    assert top == pytest.approx(1.12 * max(np.abs([*sides, curve.deviation[near]]).max(), 0.01))
    far = int(np.flatnonzero(~near)[0])
    assert abs(curve.deviation[far]) > 2 * top
    up, down = picture.artists["edge"]
    edge = up if curve.deviation[far] > 0 else down
    np.testing.assert_allclose(edge.get_offsets()[:, 0], curve.predicted[far])
    assert len(up.get_offsets()) + len(down.get_offsets()) == 1
    assert np.isnan(np.ma.filled(picture.artists["marks"].get_offsets(), np.nan)[far, 1])


def test_limits_are_those_of_the_rows():
    count = np.array([500, 480, 15, 5])
    far = np.array([0.1, -0.05, 0.2, 0.9])
    assert marks.reach(count, far) == pytest.approx(1.12 * 0.2)  # 99.5 % of the rows
    assert marks.reach(np.array([500, 470, 15, 15]), far) == pytest.approx(1.12 * 0.9)
    assert marks.reach(count, np.minimum(far, 0.25)) == pytest.approx(1.12 * 0.25)  # little more
    assert marks.reach(count, far * np.inf) == 0.01


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


def test_log_odds_axis(rng):
    p = 1 / (1 + np.exp(-rng.normal(-6.0, 1.5, 5000)))
    curve = reliability_curve(p, rng.random(5000) < p, bins=ct.QuantileBins(10))
    assert (curve.observed == 0).any()
    for style in ("deviation", "classical"):
        picture = curve.plot(style=style, axis="log-odds")
        offsets = np.ma.filled(picture.artists["marks"].get_offsets(), np.nan)
        some = curve.observed > 0
        x, y = np.log(curve.predicted / (1 - curve.predicted)), np.log(curve.observed[some])
        y = y - np.log(1 - curve.observed[some])
        np.testing.assert_allclose(offsets[some, 0], x[some])
        np.testing.assert_allclose(offsets[some, 1], y - x[some] if style == "deviation" else y)
        np.testing.assert_allclose(picture.artists["edge"][1].get_offsets()[:, 0], x[~some])
        histogram = picture.artists["histogram"]
        assert sum(column.get_height() for column in histogram) == pytest.approx(1.0)


@pytest.mark.parametrize("axis", ["probability", "log-odds"])
def test_a_component_has_a_panel(axis):
    curve = reliability_curve(DIGITS, lens=ct.TopK(2), bins=5)
    picture = curve.plot(axis=axis)
    scale = Scale(axis == "log-odds")
    said = [panel.artists["name"].get_text().split("\n")[0] for panel in picture.panels]
    assert said == list(curve.names)
    for j, panel in enumerate(picture.panels):
        part = curve.of(j)
        at = scale(part.predicted)
        points = np.column_stack([at, scale(part.observed) - at])
        np.testing.assert_allclose(panel.artists["marks"].get_offsets(), points)
    for limits in ("get_xlim", "get_ylim"):
        assert len({getattr(panel.ax, limits)() for panel in picture.panels}) == 1
    twins = [panel.artists["histogram"][0].axes for panel in picture.panels]
    assert len({twin.get_ylim() for twin in twins}) == 1


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


@pytest.mark.slow
@pytest.mark.parametrize("fit", ["isotonic", "smooth"])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_bands_hold_the_curves_of_calibrated_models(rng, fit, simultaneous):
    covered, trials = [], 40
    asked = {"lens": ct.OneVsRest(0), "fit": fit, "simultaneous": simultaneous, "points": 60}
    for r in range(trials):
        data = ct.examples.GaussianMixture().sample(120, rng)
        curve = reliability_fit(data, n_resamples=39, rng=r, **asked)
        inside = (curve.fitted >= curve.low - 1e-12) & (curve.fitted <= curve.high + 1e-12)
        covered.append(inside.all() if simultaneous else inside.mean())
    # 40 data sets at 0.9: four standard errors are 0.19, and less for averages over a curve.
    assert np.mean(covered) >= 0.9 - (0.19 if simultaneous else 0.06)


# --- the simplex ---------------------------------------------------------------------------------


TRIANGLE = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])


@pytest.mark.parametrize(("lens", "m"), [(GROUPS, 5), (FOUR, 3)])
def test_simplex_holds_the_numbers(lens, m):
    simplex = reliability_simplex(DIGITS, lens=lens, bins=m, n_resamples=99, rng=1)
    artists = simplex.plot(min_count=6).artists
    corners = TRIANGLE if lens is GROUPS else TETRAHEDRON
    kinds = {
        "significant": simplex.significant,
        "few": ~simplex.significant & (simplex.count < 6),
        "chance": ~simplex.significant & (simplex.count >= 6),
    }
    assert sum(rows.sum() for rows in kinds.values()) == simplex.count.size
    assert all(rows.any() for rows in kinds.values())
    for kind, rows in kinds.items():
        tails = simplex.predicted[rows] @ corners
        np.testing.assert_allclose(artists["dots"][kind].get_offsets(), tails)
        if kind != "few":
            arrows = artists["arrows"][kind]
            np.testing.assert_allclose(np.column_stack([arrows.X, arrows.Y]), tails)
            heads = tails + np.column_stack([arrows.U, arrows.V])
            np.testing.assert_allclose(heads, simplex.observed[rows] @ corners, atol=1e-12)
    assert set(artists["arrows"]) == {"significant", "chance"}
    assert [text.get_text() for text in artists["corners"]] == list(simplex.names)
    if lens is GROUPS:  # 25 equal cells: the density that is 1 on average
        np.testing.assert_allclose(artists["cells"].get_array(), 25 * simplex.count / simplex.n)


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


def test_columns_of_single_values_meet_half_way():
    assert numbers._around(np.array([1.0, 2.0, 4.0])).tolist() == [0.5, 1.5, 3.0, 5.0]


def test_audit_picture_holds_the_numbers(every):
    """What is drawn, printed and decides is the adjusted p-value; no colour is needed to see it."""
    report = ct.audit(ct.examples.digits("best"), n_resamples=199, rng=1)
    artists = report.plot().artists
    marked = [mark.get_marker() == "s" for mark in artists["values"]]
    assert marked == [row.verdict.rejects for row in report.rows]
    assert {True, False} == set(marked)
    drawn = [mark.get_xdata()[0] for mark in artists["values"]]
    np.testing.assert_allclose(drawn, [row.adjusted for row in report.rows])
    said = [label.get_text() for label in artists["labels"]]
    assert said == [p_is(row.adjusted) for row in report.rows]
    assert artists["alpha"].get_xdata()[0] == report.alpha


def across(points):
    """The places of points along the axis."""
    return np.ma.filled(points.get_offsets(), np.nan)[:, 0]


def ends(lines):
    return segments(lines)[:, :, 0]


#: Of a result and what is drawn of it: what is there, and what ought to be.
NUMBERS = {
    "sensitivity": lambda r, a: [
        (a["estimate"].get_data(), [r.size, r.estimate]),
        (a["floor"].get_data(), [r.size, r.null_mean]),
    ],
    "interval": lambda r, a: [
        (a["estimate"].get_offsets(), [[r.estimate, 0.0]]),
        (ends(a["interval"]), [[r.low, r.high]]),
        (a["floor"].get_xdata()[0], r.null_mean),
    ],
    "gate": lambda r, a: [
        (across(a["estimate"]), [check.corrected for check in r.checks]),
        (ends(a["bounds"]), [(check.low, check.high) for check in r.checks]),
        (ends(a["limit"])[:, 0], [check.limit for check in r.checks]),
    ],
    "equivalence": lambda r, a: [
        (ends(a["bounds"]), [[0.0, r.smallest_tolerance]]),
        (ends(a["limit"])[0, 0], r.tolerance),
    ],
    "grades": lambda r, a: [
        (across(a["rates"])[:-1], [row.rate or np.nan for row in r.grades]),
        (across(a["probabilities"])[:-1], [row.probability for row in r.grades]),
        (ends(a["intervals"])[:-1, 1], [row.interval[1] for row in r.grades]),
    ],
    "difference": lambda r, a: [
        (a["marks"].get_offsets(), np.column_stack([r.predicted, r.difference])),
        (segments(a["bars"])[:, :, 1], np.column_stack([r.low, r.high])),
    ],
    "forest": lambda r, a: [
        (across(a["estimates"]), [t.estimate for t in r.tests]),
        (ends(a["floors"]).mean(axis=1), [t.null_mean for t in r.tests]),
        (np.ptp(ends(a["floors"]), axis=1), [2.0 * t.null_std for t in r.tests]),
        (a["estimates"].get_facecolors()[:, 0] < 0.5, np.array(r.adjusted) <= 0.05),
    ],
    "sites": lambda r, a: [
        (across(a["sites"]), np.exp(r.log_oe.values)),
        (a["sites"].get_sizes().max(), 32.0),
        (ends(a["prediction"])[0], np.exp(r.log_oe.prediction)),
    ],
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_pictures_hold_the_numbers(every, drawn, kind):
    for shown, expected in NUMBERS[kind](every[kind], drawn[kind].artists):
        np.testing.assert_allclose(shown, expected)


def test_every_finding_has_a_sign_of_its_own():
    pvalues = [0.03, 0.4, 0.01, 0.5, 0.6]
    picture = plots.pvalues(pvalues, list("abcde"), findings=list(Finding))
    assert [mark.get_marker() for mark in picture.artists["values"]] == ["s", "X", "D", "o", "x"]


def test_labels_of_rejections_are_bold():
    pvalues = [0.03, 0.4, 0.01, 0.5, 0.6]
    picture = plots.pvalues(pvalues, list("abcde"), findings=list(Finding))
    weights = [t.get_fontweight() for t in picture.ax.get_yticklabels()]
    assert weights == ["bold", "bold", "normal", "normal", "normal"]


@pytest.mark.parametrize("kind", ["CORP", "Brier"])
def test_parts_of_a_score_add_up_in_the_picture(every, kind):
    parts = every[kind]
    bars = parts.plot().artists["bars"]
    begins, widths = [b.get_x() for b in bars], [b.get_width() for b in bars]
    np.testing.assert_allclose(begins[1:-1], np.cumsum(widths)[:-2])
    assert sum(widths[:-1]) == pytest.approx(parts.mean_score, abs=1e-12)
    assert (widths[-1], widths[0]) == (parts.mean_score, parts.uncertainty)
    assert [bool(bar.get_hatch()) for bar in bars] == [width < 0.0 for width in widths]


def test_cox_picture_holds_the_curve(every):
    result = every["Cox"]
    artists = result.plot().artists
    p, y = artists["curve"].get_data()
    z = np.log(p / (1 - p))
    np.testing.assert_allclose(np.log(y / (1 - y)), result.intercept + result.slope * z)
    assert (p.min() < 0.01) & (p.max() > 0.99)
    _, low, high = result.curve(p)
    corners = artists["band"].get_paths()[0].vertices
    for side in (low, high):
        distance = np.abs(corners[:, None] - np.column_stack([p, side])).sum(axis=2).min(axis=0)
        np.testing.assert_allclose(distance, 0.0, atol=1e-12)


def test_comparison_holds_the_numbers_and_crosses_no_gap():
    p = np.array([0.05] * 40 + [0.15] * 40 + [0.95] * 40)
    curves = [
        reliability_curve(q, np.arange(120) % 3 == 0, lens=ct.OneVsRest(1), bins=10)
        for q in (p, p * 0.9 + 0.02)
    ]
    artists = plots.comparison(curves, names=["a", "b"]).artists
    for curve, markers, lines in zip(curves, artists["marks"], artists["lines"], strict=True):
        points = np.column_stack([curve.predicted, curve.deviation])
        np.testing.assert_allclose(markers.get_offsets(), points)
        np.testing.assert_allclose(segments(lines), [points[:2]])  # no line to the last bin
    texts = [text.get_text() for text in artists["key"].get_texts()]
    assert texts[0].startswith("a: ECE 0.")


# --- speed and the command line ------------------------------------------------------------------


KINDS_OF_FILES = ["deviation", "smooth", "simplex", "bins", "null", "difference", "audit"]


@pytest.mark.parametrize("kind", KINDS_OF_FILES)
def test_command_line_writes_a_picture_and_prints_the_numbers(done, tmp_path, kind):
    file, out = tmp_path / "model.npz", tmp_path / f"{kind}.png"
    data = ct.examples.GaussianMixture(0.3, -2.0).sample(300, 1)
    probs = np.column_stack([0.5 * data.probs[:, 0], data.probs[:, 1], 0.5 * data.probs[:, 0]])
    np.savez(file, probs=probs, labels=np.where(data.labels == 1, 1, 2 * (np.arange(300) % 2)))
    more = ["--against", file] if kind == "difference" else []
    assert "caltest" in done("plot", file, "--kind", kind, "-o", out, "--no-recipe", *more)
    assert out.stat().st_size > 5000
