"""Questions with one right answer, put to other packages, for :mod:`validation.peers`."""

from __future__ import annotations

from functools import partial
from importlib import import_module

import numpy as np

import caltest as ct
from validation.pages import table

EVENT = ct.OneVsRest(1)


def mapie(name):
    return getattr(import_module("mapie.metrics.calibration"), name)


def both(p):
    return np.column_stack([1.0 - p, p])


# --- an error that every definition puts at one half or more -----------------------------------

SPLIT = np.array([0.2, 0.2, 0.8, 0.8]), np.array([1, 1, 0, 0])


def mapie_two_bins():
    """Two bins are two intervals, and both are off by .8."""
    p, y = SPLIT
    return mapie("expected_calibration_error")(y, p, num_bins=2, split_strategy="uniform")


def caltest_two_bins():
    return ct.ECE(2)(*SPLIT)


ZEROS = np.repeat([0.0, 0.46], 50), np.r_[np.ones(50, dtype=int), np.arange(50) < 23]


def calzone_zeros():
    p, y = ZEROS
    module = import_module("calzone.metrics")
    found = module.CalibrationMetrics(class_to_calculate=1).calculate_metrics(y, both(p), ["ECE-H"])
    return round(found["ECE-H"], 12)


def caltest_zeros():
    return ct.ECE(10)(*ZEROS)


def calzone_equal_count():
    """Rows that its bins of equal count hold, of 100."""
    p = (np.arange(100) + 0.5) / 100
    y = (np.arange(100) % 2).astype(int)
    diagram = import_module("calzone.utils").reliability_diagram
    return sum(diagram(y, both(p), num_bins=10, class_to_plot=1, is_equal_freq=True)[3])


def caltest_equal_count():
    p = (np.arange(100) + 0.5) / 100
    rows = ct.RowProblem.of(ct.Predictions.of(p, np.arange(100) % 2))
    return int(ct.Cells.of(ct.QuantileBins(10), rows).counts.sum())


# --- p-values ----------------------------------------------------------------------------------

WALK = np.array([0.1, 0.9, 0.21, 0.9, 0.5]), np.array([0, 1, 0, 1, 0])


def mapie_range():
    """Its example: the range of a walk is at least its largest distance from 0, .978."""
    return mapie("kuiper_statistic")(WALK[1], WALK[0])


def mapie_distance():
    return mapie("kolmogorov_smirnov_statistic")(WALK[1], WALK[0])


def caltest_range():
    return ct.Kuiper(scaled=True)(*WALK)


def unsure():
    """A model that says .7 and is right 199 times of 200."""
    return np.full(200, 0.7), (np.arange(200) > 0).astype(int)


def mapie_unsure():
    return mapie("spiegelhalter_p_value")(*unsure()[::-1])


def probcal_unsure():
    p, y = unsure()
    return import_module("probcal.metrics").spiegelhalter_z(y, p).p_value


def calzone_unsure():
    p, y = unsure()
    return import_module("calzone.metrics").spiegelhalter_z_test(y, both(p))[1]


def caltest_unsure():
    return ct.calibration_test(*unsure(), ct.Spiegelhalter(), lens=EVENT, null="asymptotic").pvalue


def over_orders(pvalue):
    """How far p moves over 50 orders of the same 90 rows, most of them tied."""
    rng = np.random.default_rng(1)
    p = rng.integers(1, 10, 90) / 10.0
    y = (rng.random(90) < p).astype(int)
    orders = [rng.permutation(90) for _ in range(50)]
    values = [pvalue(p[i], y[i]) for i in orders]
    return max(values) - min(values)


def mapie_orders():
    return over_orders(lambda p, y: mapie("kuiper_p_value")(y, p))


def mcgrad_orders():
    return over_orders(lambda p, y: import_module("mcgrad.metrics").ecce_pvalue(y, p))


def caltest_orders():
    def pvalue(p, y):
        return ct.calibration_test(p, y, ct.Kuiper(), lens=EVENT, null="asymptotic").pvalue

    return over_orders(pvalue)


# --- input that no answer belongs to -----------------------------------------------------------


def percent():
    return np.array([30.0, 40.0, 80.0, 90.0] * 5), np.array([0, 1, 1, 1] * 5)


def with_nan():
    return np.array([0.3, np.nan, 0.8, 0.9] * 5), np.array([0, 1, 1, 1] * 5)


def bad_caltest(rows):
    return ct.ECE(10)(*rows())


def bad_probcal(rows):
    p, y = rows()
    return import_module("probcal.metrics").ece(y, p)


def bad_mapie(rows):
    p, y = rows()
    return mapie("expected_calibration_error")(y, p, num_bins=10)


def bad_mcgrad(rows):
    p, y = rows()
    return import_module("mcgrad.metrics").expected_calibration_error(y, p)


def bad_calzone(rows):
    p, y = rows()
    return import_module("calzone.metrics").spiegelhalter_z_test(y, both(p))[1]


def bad_verified(rows):
    p, y = rows()
    return import_module("calibration").get_calibration_error(p, y, debias=False)


def bad_netcal(rows):
    p, y = rows()
    return import_module("netcal.metrics").ECE(10).measure(p, y)


def bad_sklearn(rows):
    p, y = rows()
    seen, claimed = import_module("sklearn.calibration").calibration_curve(y, p)
    return abs(seen - claimed).mean()


def bad_calibstats(rows):
    p, y = rows()
    return import_module("calibstats").ece(p, y)


def bad_reliably(rows):
    p, y = rows()
    return import_module("reliably.metrics").ece(y, p, ci=None).value


def bad_kunko(rows):
    p, y = rows()
    calibration = import_module("judge_audit.metrics.calibration")
    return calibration.expected_calibration_error(p.tolist(), y.astype(bool).tolist())


def bad_sys1(rows):
    return import_module("sys1bench.metrics.calibration").ece(*rows())


READERS = {
    "probcal": bad_probcal,
    "MAPIE": bad_mapie,
    "MCGrad": bad_mcgrad,
    "calzone-tool": bad_calzone,
    "uncertainty-calibration": bad_verified,
    "netcal": bad_netcal,
    "scikit-learn": bad_sklearn,
    "calibstats": bad_calibstats,
    "reliably-metrics": bad_reliably,
    "kunko-judge-audit": bad_kunko,
    "sys1bench": bad_sys1,
    "caltest": bad_caltest,
}
TWO = "ECE of four rows, all off by .8, in two bins"
LOST = "ECE when 50 rows of p = 0 all happen, and 50 others are right"
COUNT = "rows in ten bins of equal count, of 100"
RANGE = "Kuiper's statistic of a walk that ends .978 from 0"
UNSURE = "Spiegelhalter's p for 200 rows of .7, of which 199 happen"
ORDER = "largest change of Kuiper's p over 50 orders of the same rows"
PERCENT = "what is made of 30, 40, 80 and 90, which are percentages"
NAN = "what is made of a nan"
REFUSE = "none"
#: A question and who answers → package, how, and the right answer.
FIXED = {
    f"{question} · {who}": (who.split()[0], how, right)
    for question, right, answers in (
        (TWO, "0.8", {"MAPIE": mapie_two_bins, "caltest": caltest_two_bins}),
        (LOST, "0.5", {"calzone-tool": calzone_zeros, "caltest": caltest_zeros}),
        (COUNT, "100", {"calzone-tool": calzone_equal_count, "caltest": caltest_equal_count}),
        (RANGE, "≥ 0.978", {"MAPIE": mapie_range, "caltest": caltest_range}),
        (UNSURE, "about 0", {
            "MAPIE": mapie_unsure, "probcal": probcal_unsure, "calzone-tool": calzone_unsure,
            "caltest": caltest_unsure,
        }),
        (ORDER, "0", {"MAPIE": mapie_orders, "MCGrad": mcgrad_orders, "caltest": caltest_orders}),
        (PERCENT, REFUSE, {who: partial(how, percent) for who, how in READERS.items()}),
        (NAN, REFUSE, {who: partial(how, with_nan) for who, how in READERS.items()}),
    )
    for who, how in answers.items()
}  # fmt: skip


def fixed_page(found):
    """Return the lines of the table."""
    rows = []
    for name, (_, _, right) in FIXED.items():
        means = found.means("fixed", name)
        if means is None:
            continue
        question, who = name.split(" · ")
        answer = f"{round(means[0] / means[1], 25):.3g}" if means[1] else "none"
        rows.append([question, who, answer, right])
    head = ["question", "package", "answer", "right"]
    return ["## Questions with one right answer", "", *table(head, rows, left=2)]
