"""Sizes of pictures, their keys, and signed forests."""

import numpy as np
import pytest
from conftest import one_hospital_too_low
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import caltest as ct


@pytest.fixture(scope="module")
def hospitals():
    return one_hospital_too_low(900)


@pytest.fixture(scope="module")
def signed(hospitals):
    return ct.confidence_interval(hospitals, None, ct.MeanDifference()).subgroups


@pytest.fixture(scope="module")
def curve():
    return ct.reliability_curve(ct.examples.digits(), rng=0)


def sizes(picture):
    return [t.get_fontsize() for t in picture.figure.findobj(Text) if t.get_text().strip()]


def test_words_grow_with_the_picture(curve):
    paper, screen = curve.plot(), curve.plot(size="screen")
    assert screen.figure.get_size_inches() == pytest.approx(2 * paper.figure.get_size_inches())
    assert min(sizes(screen)) == pytest.approx(1.5 * min(sizes(paper)))


def test_no_word_is_below_6_points_in_print(curve, signed):
    for picture in (curve.plot(), signed.plot()):
        assert min(sizes(picture)) >= 6.0


def test_a_figure_that_is_given_keeps_its_size(curve):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0, 4.0))
    curve.plot(ax=figure.add_subplot(), size="talk")
    assert tuple(figure.get_size_inches()) == (5.0, 4.0)


def test_a_picture_without_its_key(curve):
    assert curve.plot().artists["key"].get_visible()
    assert not curve.plot(legend=False).artists["key"].get_visible()


def test_another_size_is_refused(curve):
    with pytest.raises(ct.StatisticError, match="size"):
        curve.plot(size="poster")


def test_signed_forests_show_intervals_with_numbers_of_rows(signed):
    picture = signed.plot()
    assert picture.ax.get_xlabel() == "Observed − predicted"
    names = " ".join(label.get_text() for label in picture.ax.get_yticklabels())
    assert f"Porto ({signed.counts[signed.names.index('Porto')]})" in names
    words = [text.get_text() for text in picture.artists["key"].get_texts()]
    assert "95 % for all subgroups" in words
    assert "0 lies outside" in words


@pytest.mark.parametrize("size", ["paper", "screen"])
def test_words_of_a_signed_forest_do_not_overlap(signed, size):
    picture = signed.plot(size=size, recipe=False)
    FigureCanvasAgg(picture.figure).draw()
    texts = [t for t in picture.figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    boxes = [t.get_window_extent() for t in texts]
    for i, a in enumerate(boxes):
        for j in range(i):
            crossed = a.x0 < boxes[j].x1 - 1 and boxes[j].x0 < a.x1 - 1
            crossed = crossed and a.y0 < boxes[j].y1 - 1 and boxes[j].y0 < a.y1 - 1
            assert not crossed, (texts[i].get_text(), texts[j].get_text())


def test_significant_cells_of_the_triangle_are_black_and_the_others_hollow():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    true = probs**0.4 / (probs**0.4).sum(axis=1, keepdims=True)
    labels = (rng.random(3000)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    dots = ct.reliability_simplex(probs, labels, n_resamples=199, rng=0).plot().artists["dots"]
    dark, plain = (dots[name].get_facecolors()[0][:3].mean() for name in ("significant", "chance"))
    assert dark < 0.1 < 0.9 < plain
