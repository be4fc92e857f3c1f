"""Every rule of the recommendation is reached by the situation that it is for."""

import numpy as np
import pytest
from scipy.special import expit

import caltest as ct
from caltest.reports.first_screen import RULES, Situation, recommendation
from caltest.results import AuditVerdict as V

WRONG = {"verdict": V.MISCALIBRATED, "rejects": True, "rows": "patients"}
CASES = {
    "doubt": ({**WRONG, "doubts": ("column died is the prediction",)}, "Check the data first: col"),
    "too little": (
        {"verdict": V.TOO_LITTLE_DATA, "rejects": False, "n": 100, "needed": 3000, "rows": "cases"},
        "Collect about 2900 more cases; 100 cannot show an error of 10\u00a0pp.",
    ),
    "improved": ({**WRONG, "better": True}, "Use the recalibrated model."),
    "within tolerance": (
        {"verdict": V.TOO_LITTLE_TO_MATTER, "rejects": True, "tolerance": 0.02},
        "No action needed at a tolerance of 2\u00a0pp.",
    ),
    "straddles": (
        {"verdict": V.CANNOT_TELL, "rejects": True, "tolerance": 0.05},
        "The error is close to the tolerance; more data may not settle it.",
    ),
    "slopes differ": (
        {**WRONG, "slopes_pvalue": 0.001, "levels_pvalue": 0.001, "groups": "hospital"},
        "Recalibrate every hospital by itself. Then check new patients.",
    ),
    "levels differ": (
        {**WRONG, "levels_pvalue": 0.001, "slopes_pvalue": 0.5, "apart": ("Porto",),
         "common_slope": 0.7, "slope": (0.67, 0.57, 0.78)},
        "Recalibrate: an intercept of its own for Porto, one slope (0.70) for all. Then check new "
        "patients.",
    ),
    "subgroup above tolerance": (
        {"verdict": V.CANNOT_TELL, "rejects": False, "above": ("West",), "needed": 900},
        "Recalibrate West separately. Then check new observations.",
    ),
    "temperature": (
        {**WRONG, "temperature": 1.55, "enough": True, "rows": "images"},
        "Fit a temperature (about 1.55) on held-out data, then test again on new images.",
    ),
    "classes": (
        {**WRONG, "repair": "level", "rows": "images"},
        "Recalibrate on held-out data with a shift of the log-probability of every class. Then "
        "check new images.",
    ),
    "shift": (
        {**WRONG, "mean": (0.02, 0.05), "slope": (0.98, 0.9, 1.1), "shift": 0.3},
        "Shift the log-odds by +0.30. Then check new patients.",
    ),
    "slope": (
        {**WRONG, "slope": (0.67, 0.57, 0.78), "intercept": -0.2},
        "Recalibrate (slope 0.67, intercept −0.20). Then check new patients.",
    ),
    "segment": (
        {**WRONG, "segment": "age > 71"},
        "Check age > 71 on new patients, or add its columns to the model.",
    ),
    "curve": ({**WRONG}, "Recalibrate with a curve (isotonic or beta) on held-out data."),
    "nothing found": (
        {"verdict": V.CALIBRATED, "rejects": False, "detectable": 0.03},
        "No action needed now. Errors up to 3\u00a0pp would not be detected.",
    ),
}  # fmt: skip


def test_every_rule_has_a_case():
    assert list(CASES) == [rule.name for rule in RULES]


@pytest.mark.parametrize("name", CASES)
def test_the_first_rule_that_holds_speaks(name):
    facts, said = CASES[name]
    situation = Situation(**facts)
    assert next(rule.name for rule in RULES if rule.holds(situation)) == name
    assert recommendation(situation).startswith(said)


def test_a_straddled_tolerance_says_how_many_rows_would_tell():
    facts = {"verdict": V.CANNOT_TELL, "rejects": False, "n": 100, "needed": 900, "rows": "loans"}
    assert recommendation(Situation(**facts)) == "Collect about 800 more loans."


def test_foretold_numbers_of_rows_have_two_digits():
    facts = {"verdict": V.CANNOT_TELL, "rejects": False, "n": 1364, "needed": 5400}
    assert recommendation(Situation(**facts)) == "Collect about 4000 more observations."


def test_a_subgroup_above_the_tolerance_is_not_told_to_wait():
    facts = {"verdict": V.CANNOT_TELL, "rejects": True, "needed": 5400, "above": ("West",),
             "apart": ("West",), "levels_pvalue": 0.001, "common_slope": 0.76}  # fmt: skip
    assert "an intercept of its own for West" in recommendation(Situation(**facts))


@pytest.mark.filterwarnings("ignore::caltest.errors.FewClustersWarning")
def test_a_page_with_a_subgroup_above_the_tolerance_says_so():
    rng = np.random.default_rng(1)
    clinic = np.repeat(np.arange(40), 25)
    place = np.array(["north", "south", "east", "west"])[clinic % 4]
    z = rng.normal(-1.0, 1.1, 1000)
    true = z + 0.3 * rng.standard_normal(40)[clinic] + 0.5 * (place == "west")
    y = (rng.random(1000) < expit(true)).astype(int)
    run = {"tolerance": 0.048, "n_resamples": 199, "rng": 0}
    page = ct.report(expit(1.3 * z), y, by=place, clusters=clinic, **run)
    assert page.verdict is V.CANNOT_TELL
    assert page.screen.word == "CANNOT TELL OVERALL"
    assert page.screen.matters.startswith("Yes at west")
    assert "west" in page.screen.next


def test_many_subgroups_are_cut_short():
    assert Situation(V.MISCALIBRATED, True, apart=("a", "b", "c", "d")).each == "a, b, c, …"
