"""Number against number: what other programs return, and the preset that returns it too.

``python -m validation.agreement`` writes ``docs/agreement.md``. The numbers of the others were
measured by running them (the tests do so again where they are installed), or are published.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

import caltest as ct
from caltest import presets

#: The ten rows of five classes of the ECE tutorial.
TUTORIAL_MULTI = np.array(
    [
        [0.25, 0.2, 0.22, 0.18, 0.15],
        [0.16, 0.06, 0.5, 0.07, 0.21],
        [0.06, 0.03, 0.8, 0.07, 0.04],
        [0.02, 0.03, 0.01, 0.04, 0.9],
        [0.4, 0.15, 0.16, 0.14, 0.15],
        [0.15, 0.28, 0.18, 0.17, 0.22],
        [0.07, 0.8, 0.03, 0.06, 0.04],
        [0.1, 0.05, 0.03, 0.75, 0.07],
        [0.25, 0.22, 0.05, 0.3, 0.18],
        [0.12, 0.09, 0.02, 0.17, 0.6],
    ]
)
TUTORIAL_MULTI_LABELS = np.array([0, 2, 3, 4, 2, 0, 1, 3, 3, 2])
TARGET = Path(__file__).parents[1] / "docs" / "agreement.md"


@cache
def data(name: str) -> Any:
    """Return probs and labels: two columns for W, ten for D, five for T."""
    if name == "W":  # the stream of calzone's simulated_welldata.csv
        state = np.random.RandomState(123)
        p = scipy.stats.beta.rvs(0.5, 0.5, size=5000, random_state=state)
        return np.column_stack([1.0 - p, p]), state.binomial(1, p)
    if name == "D":
        digits = ct.examples.digits("overfit")
        return digits.probs, digits.labels
    return TUTORIAL_MULTI, TUTORIAL_MULTI_LABELS


def _netcal(measure: str, *args: Any, **options: Any) -> Any:
    def run(probs: Any, labels: Any) -> float:
        import netcal.metrics

        scores = probs[:, 1] if probs.shape[1] == 2 else probs
        return float(getattr(netcal.metrics, measure)(*args, **options).measure(scores, labels))

    return run


def _torchmetrics(norm: str, n_bins: int) -> Any:
    def run(probs: Any, labels: Any) -> float:
        import torch
        from torchmetrics.functional import classification as tm

        truth = torch.tensor(labels)
        if probs.shape[1] == 2:
            event = torch.tensor(probs[:, 1])
            return float(tm.binary_calibration_error(event, truth, n_bins=n_bins, norm=norm))
        scores, k = torch.tensor(probs), probs.shape[1]
        return float(tm.multiclass_calibration_error(scores, truth, k, n_bins=n_bins, norm=norm))

    return run


def _calzone(index: int, class_index: int | None, equal: bool) -> Any:
    def run(probs: Any, labels: Any) -> float:
        from calzone import metrics, utils

        rates, means, _, counts = utils.reliability_diagram(
            labels, probs, num_bins=10, class_to_plot=class_index, is_equal_freq=equal
        )
        if index == 2:
            return float(metrics.hosmer_lemeshow_test(rates, means, counts, df=10)[0])
        return float(metrics.calculate_ece_mce(rates, means, counts)[index])

    return run


def _spiegelhalter(probs: Any, labels: Any) -> float:
    from calzone.metrics import spiegelhalter_z_test

    return float(spiegelhalter_z_test(labels, probs)[0])


def _cox(index: int) -> Any:
    def run(probs: Any, labels: Any) -> float:
        from calzone.metrics import cox_regression_analysis

        return float(cox_regression_analysis(labels, probs)[index])

    return run


def _helm(probs: Any, labels: Any) -> float:
    import calibration

    right = (probs.argmax(axis=1) == labels).astype(int)
    return float(calibration.get_ece_em(probs.max(axis=1), right, num_bins=10))


def _monai(reduction: str, channel: int | None) -> Any:
    def run(probs: Any, labels: Any) -> float:
        import torch
        from monai.metrics import CalibrationErrorMetric

        metric = CalibrationErrorMetric(20, calibration_reduction=reduction)
        scores = torch.tensor(probs.T[None])
        metric(y_pred=scores, y=torch.tensor(np.eye(probs.shape[1])[labels].T[None]))
        by_channel = metric.aggregate("none")[0]
        return float(by_channel.mean() if channel is None else by_channel[channel])

    return run


def _hle(probs: Any, labels: Any) -> float:
    """Follow the published rule: sort, cut after every hundred, leave the last bin out."""
    pairs = sorted(zip(probs[:, 1].tolist(), labels.tolist(), strict=True), key=itemgetter(0))
    total = 0.0
    for b in range(len(pairs) // 100 - 1):
        stated, right = zip(*pairs[100 * b : 100 * b + 100], strict=True)
        total += 100 / len(pairs) * (sum(stated) / 100 - sum(right) / 100) ** 2
    return float(total**0.5)


def _kumar(name: str, **options: Any) -> Any:
    def run(probs: Any, labels: Any) -> float:
        import calibration

        return float(getattr(calibration, name)(probs, labels, **options))

    return run


def _relplot(probs: Any, labels: Any) -> float:
    import relplot

    if probs.shape[1] == 2:
        return float(relplot.smECE(probs[:, 1], labels))
    return float(relplot.smECE(probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(float)))


@dataclass(frozen=True)
class Row:
    """One number of another program.

    ``recipe`` is evaluated with ``presets`` and ``ct``; ``run`` calls the program, where it is
    installed.
    """

    tool: str
    what: str
    data: str
    theirs: float
    recipe: str
    tolerance: float = 1e-9
    run: Callable[[Any, Any], float] | None = None

    def ours(self) -> float:
        """Return the number of the preset."""
        value = eval(self.recipe, {"presets": presets, "ct": ct})
        probs, labels = data(self.data)
        if isinstance(value, presets.Preset):
            return value(probs, labels)
        return float(value(probs[:, 1], labels))


CALZONE = "calzone-tool 0.1.0"
NETCAL = "netcal 1.4.0"
TORCH = "torchmetrics 1.9.0"
KUMAR = "uncertainty-calibration 0.1.4"
RELPLOT = "relplot 1.0.3"
HELM = "HELM: uncertainty-calibration 0.1.4"
MONAI = "MONAI 1.6.1"
HLE = "Humanity's Last Exam, published rule"
NIXON = "Nixon et al., authors' code"
FULL = "presets.calzone('{}', class_index={})"
SLOPE = "lambda p, y: ct.cox_recalibration(p, y).{}"
ROWS = [
    Row(CALZONE, "ECE-H, class 1", "W", 0.01208775955804901, FULL.format("ece-h", 1),
        run=_calzone(0, 1, False)),
    Row(CALZONE, "MCE-H, class 1", "W", 0.04848338618970194, FULL.format("mce-h", 1),
        run=_calzone(1, 1, False)),
    Row(CALZONE, "ECE-C, class 1", "W", 0.008733966945443138, FULL.format("ece-c", 1),
        run=_calzone(0, 1, True)),
    Row(CALZONE, "MCE-C, class 1", "W", 0.02324031223486256, FULL.format("mce-c", 1),
        run=_calzone(1, 1, True)),
    Row(CALZONE, "ECE-H, top class", "W", 0.009608653731328977, FULL.format("ece-h", None),
        run=_calzone(0, None, False)),
    Row(CALZONE, "MCE-H, top class", "W", 0.03926468843081976, FULL.format("mce-h", None),
        run=_calzone(1, None, False)),
    Row(CALZONE, "ECE-C, top class", "W", 0.009458033653818828, FULL.format("ece-c", None),
        run=_calzone(0, None, True)),
    Row(CALZONE, "MCE-C, top class", "W", 0.020515047600205505, FULL.format("mce-c", None),
        run=_calzone(1, None, True)),
    Row(CALZONE, "Hosmer–Lemeshow H", "W", 8.884991559088098, FULL.format("hl-h", 1),
        run=_calzone(2, 1, False)),
    Row(CALZONE, "Hosmer–Lemeshow C", "W", 3.694947603203135, FULL.format("hl-c", 1),
        run=_calzone(2, 1, True)),
    Row(CALZONE, "Spiegelhalter's z", "W", 0.3763269161877356, "ct.Spiegelhalter()",
        run=_spiegelhalter),
    Row(CALZONE, "Cox slope", "W", 0.994249960703559, SLOPE.format("slope"), 1e-6, _cox(0)),
    Row(CALZONE, "Cox intercept", "W", -0.04497652310964179, SLOPE.format("intercept"), 1e-6,
        _cox(1)),
    Row(NETCAL, "ECE(15)", "D", 0.0732217102603218, "presets.netcal(bins=15)",
        run=_netcal("ECE", 15)),
    Row(NETCAL, "MCE(15)", "D", 0.2569296081098005, "presets.netcal('mce', bins=15)",
        run=_netcal("MCE", 15)),
    Row(NETCAL, "ECE(10)", "W", 0.012087759558049041, "presets.netcal(task='binary')",
        run=_netcal("ECE", 10)),
    Row(NETCAL, "ECE(10, equal_intervals=False)", "W", 0.008732220150659309,
        "presets.netcal(equal_intervals=False, task='binary')",
        run=_netcal("ECE", 10, equal_intervals=False)),
    Row(TORCH, "l1, 15 bins", "D", 0.07322151958942413, "presets.torchmetrics('l1')", 5e-7,
        _torchmetrics("l1", 15)),
    Row(TORCH, "l2, 15 bins", "D", 0.08697839081287384, "presets.torchmetrics('l2')", 5e-7,
        _torchmetrics("l2", 15)),
    Row(TORCH, "max, 15 bins", "D", 0.2569296061992645, "presets.torchmetrics('max')", 5e-7,
        _torchmetrics("max", 15)),
    Row(TORCH, "l1, 10 bins", "W", 0.012087759558049043,
        "presets.torchmetrics('l1', 10, task='binary')", run=_torchmetrics("l1", 10)),
    Row(TORCH, "l2, 10 bins", "W", 0.019608423323232985,
        "presets.torchmetrics('l2', 10, task='binary')", run=_torchmetrics("l2", 10)),
    Row(TORCH, "max, 10 bins", "W", 0.04848338618970194,
        "presets.torchmetrics('max', 10, task='binary')", run=_torchmetrics("max", 10)),
    Row(KUMAR, "get_ece", "D", 0.0732217102603222, "presets.verified_calibration()",
        run=_kumar("get_ece")),
    Row(KUMAR, "get_ece_em", "D", 0.06874430362123812, "presets.verified_calibration('ece-em')",
        run=_kumar("get_ece_em")),
    Row(KUMAR, "get_calibration_error, top-label", "D", 0.07451073859003565,
        "presets.verified_calibration('l2')",
        run=_kumar("get_calibration_error", mode="top-label")),
    Row(HELM, "ece_10_bin", "D", 0.06872573119793296, "presets.helm()", run=_helm),
    Row(MONAI, "expected, mean of 10 channels", "D", 0.022366270422935486, "presets.monai()", 5e-7,
        _monai("expected", None)),
    Row(MONAI, "expected, channel 3", "D", 0.03113168478012085, "presets.monai(class_index=3)",
        5e-7, _monai("expected", 3)),
    Row(MONAI, "maximum, channel 3", "D", 0.7310546636581421,
        "presets.monai('maximum', class_index=3)", 5e-7, _monai("maximum", 3)),
    Row(HLE, "calib_err, bins of 100", "W", 0.03053216253537293, "presets.hle()", run=_hle),
    Row(RELPLOT, "smECE", "W", 0.014169355258923304, "presets.relplot(task='binary')", 1e-8,
        _relplot),
    Row(RELPLOT, "smECE of the confidence", "D", 0.07392032599979556, "presets.relplot()", 1e-8,
        _relplot),
    Row(NIXON, "SCE, 5 bins", "T", 0.1676, "presets.nixon2019('sce', 5, variant='nixon')"),
    Row(NIXON, "ACE, 5 ranges", "T", 0.176, "presets.nixon2019('ace', 5, variant='nixon')"),
    Row(NIXON, "ACE, 3 ranges", "T", 0.1296, "presets.nixon2019('ace', 3, variant='nixon')"),
    Row(NIXON, "TACE(0.01), 3 ranges", "T", 0.1343555556,
        "presets.nixon2019('tace', 3, variant='nixon')"),
]  # fmt: skip

HEADER = """# Agreement with other packages

Numbers of other programs, and the numbers of the corresponding presets of caltest on the same
data. W: 5000 calibrated two-class predictions, the stream of calzone's `simulated_welldata.csv`.
D: the embedded digits, 900 × 10. T: the ten rows of five classes of the ECE tutorial. The programs
were run; Nixon et al. and Humanity's Last Exam are their code's published rules, and scikit-learn's
error, which is not merged, comes from the points of its curve. HELM calls uncertainty-calibration,
which was run as HELM does. `python -m validation.agreement` writes this page, and the tests run
every line, with the programs themselves where they are installed.

"""
REASONS = """
## Where definitions differ

- **What a bin is.** (a, b] in Guo et al., scikit-learn and calzone, [a, b) in netcal, torchmetrics,
  T-Cal and the code of Nixon et al. It matters for rounded predictions. torchmetrics and Nixon's
  code give predictions of exactly 1 a bin of their own.
- **Equal-mass bins** are cut at ranks with ties kept together (`QuantileBins`), at interpolated
  quantiles (scikit-learn, netcal, calzone), or half-way between neighbours
  (uncertainty-calibration). calzone's first bin is open at its lower end, so that the smallest
  prediction is in no bin, and its weights add up to one row less.
- **An array of two columns** is the top class for most, the probability of class 1 for netcal.
- **Single precision.** torchmetrics turns multi-class confidences into 32 bits before it bins them,
  and MONAI all: agreement ends at 1e-7. MONAI's bins are (a, b] with its default `right=False`,
  other than its documentation says.
- **Left out.** The error of Humanity's Last Exam leaves out the last bin, the 100 to
  199 surest answers, and cuts equal confidences apart in the order of the file.
- **ECI** is relative to a constant prediction (Van Calster et al.; `ECI()`), or 100 times the mean
  square (pmcalibration; `ECI(relative=False)`).
- **The l2 error** of Kumar et al. treats the predictions of a bin as equal;
  `DebiasedL2(bins)` does not, and T-Cal divides by n_b in place of n_b − 1.
- **ACE** is the class-wise error over ranges of equal mass (Nixon et al.), or the plain average
  over occupied bins (netcal; not offered here, because a bin of one row counts as much as one of a
  thousand).
- **Hosmer–Lemeshow** p-values: calzone and others give g − 2 degrees of freedom unless told; on
  data that did not fit the model g are right.
"""


def page() -> str:
    """Return the text of the page."""
    lines = ["| program | what | data | theirs | caltest | preset |", "|---|---|---|--:|--:|---|"]
    lines += [
        f"| {row.tool} | {row.what} | {row.data} | {row.theirs:.10g} | {row.ours():.10g} "
        f"| `{row.recipe}` |"
        for row in ROWS
    ]
    return HEADER + "\n".join(lines) + "\n" + REASONS


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
