"""The metric over batches gives what all rows at once give, also from several processes."""

import numpy as np
import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError
from caltest.torch import CalibrationMetric

RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet(np.ones(4), 90).astype(np.float32)
LABELS = RNG.integers(0, 4, 90)
BATCHES = [slice(0, 40), slice(40, 41), slice(41, 90)]
VERBS = {
    "test": (ct.calibration_test, {"lens": ct.OneVsRest(2)}),
    "audit": (ct.audit, {"n_resamples": 199, "rng": 1}),
    "statistic": (ct.DebiasedL2(5), {}),
}


def filled(batches=BATCHES, *, verb="test", **more):
    function, options = VERBS[verb]
    metric = CalibrationMetric(function, **options, **more)
    for rows in batches:
        metric.update(PROBS[rows], LABELS[rows])
    return metric


def answer(result):
    return result if isinstance(result, float) else result.to_json()


@pytest.mark.parametrize("verb", VERBS)
def test_batches_are_as_good_as_all_at_once(verb):
    function, options = VERBS[verb]
    assert answer(filled(verb=verb).compute()) == answer(function(PROBS, LABELS, **options))


def test_logits_names_and_one_column():
    z = np.log(PROBS) + 3.0
    metric = CalibrationMetric(from_logits=True, classes=list("abcd"), lens=ct.OneVsRest("c"))
    for rows in BATCHES:
        metric.update(z[rows], np.array(list("abcd"))[LABELS[rows]])
    expected = ct.calibration_test(z, LABELS, from_logits=True, lens=ct.OneVsRest(2))
    assert metric.compute().estimate == expected.estimate
    one = CalibrationMetric(ct.ECE(), pos_label="yes")
    one.update([0.25, 0.75], ["no", "yes"])
    one.update(np.array([[0.5]]), [["yes"]])
    assert one.compute() == ct.ECE()([0.25, 0.75, 0.5], [0, 1, 1])


def test_states_merge_and_are_forgotten():
    metric = filled(BATCHES[:1])
    metric.merge_state(filled(BATCHES[1:]))
    assert answer(metric.compute()) == answer(filled().compute())
    metric.reset()
    with pytest.raises(InvalidPredictionsError, match="no rows yet: call update"):
        metric.compute()
    metric.update(PROBS, LABELS)
    assert answer(metric.compute()) == answer(filled().compute())


def test_a_bad_batch_is_refused_and_leaves_no_trace():
    metric = filled()
    with pytest.raises(InvalidPredictionsError, match="row 1 is 7, but with 4 classes"):
        metric.update(PROBS[:2], [0, 7])
    other, row = CalibrationMetric(), ([[0.5, 0.25, 0.25]], [1])
    other.update(*row)
    for change in (lambda: metric.update(*row), lambda: metric.merge_state(other)):
        with pytest.raises(InvalidPredictionsError, match="batches have 3 and 4 columns"):
            change()
    assert answer(metric.compute()) == answer(filled().compute())


def test_rows_of_several_processes():
    parts = [filled([rows])._batches[0] for rows in BATCHES[1:]]
    metric = filled(BATCHES[:1], gather=lambda rows: [rows, *parts])
    assert answer(metric.compute()) == answer(filled().compute())
    idle = filled([], gather=lambda rows: [rows, *filled()._batches])
    assert answer(idle.compute()) == answer(filled().compute())


def test_tensors_of_any_kind():
    torch = pytest.importorskip("torch")
    metric = CalibrationMetric(lens=ct.OneVsRest(2))
    for rows in BATCHES:
        metric.update(torch.tensor(PROBS[rows], requires_grad=True), torch.tensor(LABELS[rows]))
    assert answer(metric.compute()) == answer(filled().compute())


def test_a_metric_of_reversed_probabilities_goes_on_with_a_note():
    p = np.random.default_rng(0).beta(1.2, 1.8, 400)
    y = (np.random.default_rng(1).random(400) < p).astype(int)
    metric = CalibrationMetric(n_resamples=99)
    metric.update(1.0 - p, y)
    assert "events are rarer where probs are higher" in metric.compute().notes[0]
