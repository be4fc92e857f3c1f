"""Cases as people have them: no first answer is wrong, and each is read rightly in the end."""

import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError
from caltest.read.files import read_predictions

FILES = [
    "adtte_CNSR.csv",
    "caret.csv",
    "comp3.csv",
    "cumul.csv",
    "fasttext.csv",
    "h2o.csv",
    "hf_label.csv",
    "hf_sent.csv",
    "mixnum.csv",
    "s_02.csv",
    "survprob.csv",
    "sv_surv.csv",
]
FOLLOWED = {"time": "time", "horizon": 5}
MIXED = "CASE WHEN confidence < 1 THEN confidence ELSE confidence / 100 END"
RIGHT = [
    ("adtte_CNSR.csv", {"probs": "RISK5Y", "event": "CNSR = 0", "time": "AVAL", "horizon": 5}),
    ("bq.jsonl", {}),
    ("caret.csv", {"probs": "No, Yes", "label": "obs", "where": "mtry = 2"}),
    ("fasttext.csv", {"probs": "prob", "label": "true", "predicted_label": "pred"}),
    ("h2o.csv", {"probs": "cal_p0, cal_p1", "label": "bad_loan"}),
    ("hf_label.csv", {"probs": "score", "label": "label", "predicted_label": "pred_label"}),
    ("hf_sent.csv", {"probs": "score", "label": "gold", "predicted_label": "pred"}),
    ("mixnum.csv", {"probs": MIXED}),
    ("s_02.csv", {"probs": "risk_5y", "event": "status = 2", **FOLLOWED}),
    ("sv_surv.csv", {"probs": "1 - surv", "event": "event", **FOLLOWED}),
]


@pytest.mark.parametrize("name", FILES)
def test_no_file_is_read_wrongly_without_options(data_dir, name):
    with pytest.raises(InvalidPredictionsError) as caught:
        read_predictions(data_dir / "cases" / name)
    assert caught.value.readings


@pytest.mark.parametrize(("name", "options"), RIGHT)
def test_the_right_reading_is_calibrated(data_dir, name, options):
    data = read_predictions(data_dir / "cases" / name, **options)
    assert ct.calibration_test(data, statistic=ct.CoxScore(), n_resamples=199, rng=0).pvalue > 0.01
