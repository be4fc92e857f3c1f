"""Guards on rows of known truth: which question is raised, with which readings, and which not."""

import numpy as np
import pytest
from scipy.special import ndtri

import caltest as ct
from caltest._base.written import DependenceDoubt
from caltest.data import doubts, ends, spare_columns
from caltest.data.questions import Column, Rows, design_effect
from caltest.errors import DoubtfulInputError


def drawn(n=400, seed=0, low=0.0):
    """Return calibrated predictions of at least ``low`` with their outcomes, and the generator."""
    rng = np.random.default_rng(seed)
    p = low + (1.0 - low) * rng.beta(1.2, 1.8, n)
    return p, (rng.random(n) < p).astype(int), rng


def rows_of(p, y, named=(), **columns):
    """Return rows named ``risk`` and ``died`` beside columns that nobody named."""
    facts = {k: columns.pop(k) for k in ("weights", "clusters", "by", "said") if k in columns}
    said = {"probs": "risk", "label": "died"} | dict(facts.pop("said", {}))
    unused = tuple(Column.of(name, np.asarray(cells)) for name, cells in columns.items())
    return Rows(np.asarray(p), np.asarray(y), unused=unused, said=said, named=frozenset(named),
                **facts)  # fmt: skip


def raised(rows):
    """Return the names of the guards that raise a question."""
    return [question.guard for question in spare_columns.questions(rows)]


def options_of(question):
    return [dict(reading.options) for reading in question.readings]


def crossed(days=60, seed=3, shift=0.0, one=False):
    """Return rows of every day, two stations and two leads, and their columns."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, (days, 2, 1 if one else 2))
    y = (rng.random(p.shape) < p) * np.ones((1, 1, 2), dtype=int)
    p = np.clip(p + shift * np.array([1.0, -1.0]), 0, 1)
    day, station = np.repeat(np.arange(days), 4), np.tile(np.repeat(["A", "B"], 2), days)
    columns = {"day": day, "station": station, "lead": np.tile([24, 120], 2 * days)}
    return p.ravel(), y.ravel(), columns | {"age": rng.integers(20, 90, 4 * days)}


def test_forecasts_of_one_outcome_are_asked_about_with_each_lead():
    p, y, columns = crossed(one=True, shift=0.01)
    question = spare_columns.several_forecasts(rows_of(p, y, **columns))
    assert options_of(question) == [
        {"where": "lead = 24"}, {"where": "lead = 120"}, {"by": "lead", "clusters": "day"},
        {"clusters": "day"},
    ]  # fmt: skip


def test_forecasts_whose_errors_cancel_are_asked_about_and_calibrated_ones_are_not():
    p, y, columns = crossed(shift=0.2)
    question = spare_columns.several_forecasts(rows_of(p, y, **columns))
    assert options_of(question) == [{"where": "lead = 24"}, {"where": "lead = 120"}, {"by": "lead"}]
    assert "-0.2" in question.text
    p, y, columns = crossed()
    assert spare_columns.several_forecasts(rows_of(p, y, **columns)) is None
    by = columns.pop("lead")
    p, y, _ = crossed(shift=0.2)
    assert spare_columns.several_forecasts(rows_of(p, y, by=by, **columns)) is None


def test_ordinary_tables_raise_no_question():
    p, y, rng = drawn()
    columns = {
        "age": rng.integers(20, 90, 400), "sex": rng.choice(["f", "m"], 400),
        "x": rng.normal(size=400), "day": np.arange(400), "flag": rng.random(400) < 0.5,
    }  # fmt: skip
    assert raised(rows_of(p, y, **columns)) == []


def test_probability_of_the_other_outcome_is_asked_about_with_both_readings():
    p, y, _ = drawn()
    question = doubts.against_outcomes(rows_of(1.0 - p, y))
    assert options_of(question) == [{"probs": "1 - risk"}, {"label": "NOT died"}]
    assert "area under the ROC curve 0.2" in question.text
    assert question.asks


def test_a_calibrated_and_a_useless_model_are_not_against_the_outcomes():
    p, y, rng = drawn()
    assert doubts.against_outcomes(rows_of(p, y)) is None
    assert doubts.against_outcomes(rows_of(rng.permutation(p), y)) is None


def test_two_columns_of_probabilities_are_asked_about_by_their_order():
    p, y, _ = drawn()
    rows = rows_of(np.column_stack([p, 1.0 - p]), y, said={"probs": "p_no, p_yes"})
    assert options_of(doubts.against_outcomes(rows))[0] == {"probs": "p_yes, p_no"}


def test_outcomes_shared_by_a_day_are_no_order_of_rows():
    rng = np.random.default_rng(3)
    day = np.repeat(np.arange(6), 200)
    p = np.repeat([0.2, 0.25, 0.3, 0.6, 0.65, 0.7], 200) + rng.normal(0, 0.01, 1200)
    y = np.repeat([1, 1, 0, 0, 0, 1], 200)
    assert doubts.against_outcomes(rows_of(p, y)) is not None
    assert doubts.against_outcomes(rows_of(p, y, day=day)) is None
    assert doubts.against_outcomes(rows_of(p, y, clusters=day)) is None


def test_weights_enter_the_evidence_by_their_mean_weight():
    p, y, _ = drawn(200)
    assert doubts.against_outcomes(rows_of(1.0 - p, y, weights=np.full(200, 7.0))) is not None
    few = np.where(np.arange(200) < 6, 1.0, 1e-9)
    assert doubts.against_outcomes(rows_of(1.0 - p, y, weights=few)) is None


@pytest.mark.parametrize("classes", [2, 3])
def test_the_class_that_was_predicted_is_no_outcome(classes):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(classes), 200)
    follows = probs.argmax(axis=1)
    p = probs if classes > 2 else probs[:, 1]
    question = doubts.predicted_class(rows_of(p, follows))
    assert options_of(question) == [{"label": "COLUMN"}]
    drawn_y = (probs.cumsum(axis=1) > rng.random((200, 1))).argmax(axis=1)
    assert doubts.predicted_class(rows_of(p, drawn_y)) is None


def test_certain_predictions_that_come_true_are_no_predicted_class():
    # -log(1 - p) of a p of 1 is no evidence, however many rows there are
    y = np.tile([0, 1], 10_000)
    assert doubts.predicted_class(rows_of(y.astype(float), y)) is None
    assert doubts.predicted_class(rows_of(np.where(y, 0.9999, 0.0001), y)) is None


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("LABEL_0", "LABEL_1"), {"predicted_label": "answer"}),
        (("neg", "pos"), {"label": "(answer = 'pos') = (died = 1)"}),
        (("it's", "so"), {"label": "(answer = 'so') = (died = 1)"}),
        ((0, 1), {"predicted_label": "answer"}),
    ],
)
def test_confidences_of_answers_are_asked_about_with_the_mapping(words, options):
    p, y, _ = drawn()
    guess = (p >= 0.5).astype(int)
    sure = np.where(guess == 1, p, 1.0 - p)
    rows = rows_of(sure, y, answer=np.asarray(words)[guess])
    question = next(q for q in spare_columns.questions(rows) if q.guard == "confidences")
    assert options_of(question) == [options]


def test_an_expression_as_label_stands_in_brackets_in_the_reading_of_confidences():
    p, y, _ = drawn()
    guess = (p >= 0.5).astype(int)
    rows = rows_of(np.where(guess == 1, p, 1.0 - p), y, answer=np.array(["n", "j"])[guess],
                   said={"label": "age >= 65"})  # fmt: skip
    assert options_of(doubts.confidences(rows)) == [
        {"label": "(answer = 'j') = (CAST(age >= 65 AS INTEGER) = 1)"}
    ]


@pytest.mark.parametrize("n", [40, 1000])
def test_calibrated_predictions_above_one_half_are_no_confidences(n):
    p, y, rng = drawn(n, low=0.5)
    sex = rng.choice(["f", "m"], n)
    assert doubts.confidences(rows_of(p, y, sex=sex)) is None
    # the outcome once more, in words: it agrees with the label in every row
    assert doubts.confidences(rows_of(p, y, state=np.array(["alive", "dead"])[y])) is None


def test_train_rows_are_asked_about_with_every_other_part():
    p, y, rng = drawn()
    parts = rng.choice(["Train", "val", "test"], 400)
    question = spare_columns.train_rows(rows_of(p, y, split=parts))
    assert options_of(question) == [{"where": "split = 'test'"}, {"where": "split = 'val'"}]
    more = spare_columns.train_rows(rows_of(p, y, split=parts, said={"where": "age > 60"}))
    assert options_of(more)[0] == {"where": "(age > 60) AND split = 'test'"}


def test_a_split_in_unknown_words_is_a_doubt_and_names_a_way_to_read_one_part():
    p, y, rng = drawn()
    for words in (["lern_a", "zug_b"], [0, 1]):
        question = spare_columns.unknown_parts(rows_of(p, y, split=rng.choice(words, 400)))
        assert not question.asks
        assert f"({words[0]}, {words[1]})" in question.text
        assert "where=" in question.text
    for name, words in (("split", ["test", "val"]), ("split", [*"abcdef"]), ("mode", ["a", "b"])):
        assert spare_columns.unknown_parts(rows_of(p, y, **{name: rng.choice(words, 400)})) is None


@pytest.mark.parametrize(("name", "held"), [("is_train", "0"), ("In Train", "0"), ("holdout", "1")])
def test_a_flag_of_train_rows_is_asked_about(name, held):
    p, y, rng = drawn()
    column = Column.of(name, rng.integers(0, 2, 400))
    rows = Rows(p, y, unused=(column,))
    assert options_of(spare_columns.train_rows(rows)) == [{"where": f"{column.sql} = {held}"}]


@pytest.mark.parametrize("words", [("test", "val"), ("train", "bus"), ("train",)])
def test_columns_with_other_words_are_no_split(words):
    p, y, rng = drawn()
    assert spare_columns.train_rows(rows_of(p, y, mode=rng.choice(words, 400))) is None


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("Trainingsdaten", "Testdaten"), ["Testdaten"]),
        (("Entwicklung", "Validierung"), ["Validierung"]),
        (("Desarrollo", "Validación"), ["Validación"]),
        (("Development sample", "Out-of-time sample"), ["Out-of-time sample"]),
        (("InSample", "OutOfSample"), ["OutOfSample"]),
        (("dev", "oot_2023"), ["dev", "oot_2023"]),
    ],
)
def test_parts_of_a_data_set_are_known_in_several_languages(words, meant):
    p, y, _ = drawn()
    asked = spare_columns.train_rows(rows_of(p, y, ds=np.array(words)[np.arange(400) % 2]))
    assert options_of(asked) == [{"where": f"ds = '{word}'"} for word in meant]


def test_dev_and_test_are_asked_about_only_if_their_errors_differ():
    p, y, _ = drawn()
    part = np.array(["dev", "test"])[np.arange(400) % 2]
    assert spare_columns.train_rows(rows_of(p, y, ds=part)) is None
    other = np.where(part == "test", np.clip(p + 0.3, 0, 1), p)
    question = spare_columns.train_rows(rows_of(other, y, ds=part))
    assert options_of(question) == [{"where": "ds = 'dev'"}, {"where": "ds = 'test'"}]


def repeated(models=3, n=150, seed=5):
    p, y, rng = drawn(n, seed)
    many = np.clip(np.tile(p, models) + rng.normal(0, 0.01, n * models), 0, 1)
    return many, np.tile(y, models), np.tile(np.arange(n), models), np.repeat([*"abc"[:models]], n)


def test_several_predictions_of_one_outcome_are_asked_about():
    p, y, row, model = repeated()
    question = spare_columns.repeated_rows(rows_of(p, y, id=row, model=model))
    assert options_of(question) == [
        {"where": "model = 'a'"}, {"by": "model", "clusters": "id"}, {"clusters": "id"}
    ]  # fmt: skip
    assert "450 predictions of 150 outcomes" in question.text


def test_two_columns_may_tell_predictions_apart():
    p, y, row, _ = repeated(2)
    p, y, row = np.tile(p, 2), np.tile(y, 2), np.tile(row, 2)
    seed, size = np.tile(np.repeat([1, 2], 150), 2), np.repeat(["s", "l"], 300)
    question = spare_columns.repeated_rows(rows_of(p, y, id=row, seed=seed, size=size))
    assert options_of(question)[0] == {"where": "seed = 1 AND size = 's'"}


def test_subgroups_that_tell_predictions_apart_are_an_answer_and_others_are_not():
    p, y, row, model = repeated()
    assert spare_columns.repeated_rows(rows_of(p, y, id=row, model=model, by=model)) is None
    sex = np.where(row % 2 == 0, "f", "m")
    assert spare_columns.repeated_rows(rows_of(p, y, id=row, model=model, by=sex)) is not None


def test_names_of_classes_with_many_rows_are_not_asked_about_and_do_not_underflow():
    y = np.arange(12_000) % 12  # (1/12)^1000 is 0 in floating point
    p = np.full((12_000, 12), 1 / 12)
    name, serial = y, np.arange(12_000) // 12
    rows = rows_of(p, y, name=name, serial=serial)
    with np.errstate(all="raise"):
        spare_columns.repeated_rows(rows)
        assert spare_columns._have_one_label(rows, y, 1)


def test_repeated_measurements_with_outcomes_of_their_own_are_not_asked_about():
    p, y, rng = drawn(450)
    patient, visit = np.tile(np.arange(150), 3), np.repeat([1, 2, 3], 150)
    assert spare_columns.repeated_rows(rows_of(p, y, patient=patient, visit=visit)) is None
    rare = (rng.random(450) < 0.004).astype(int)  # one label a patient is chance here
    assert spare_columns.repeated_rows(rows_of(p, rare, patient=patient, visit=visit)) is None


def test_a_second_column_of_predictions_is_asked_about_unless_one_was_named():
    p, y, rng = drawn()
    other = np.clip(p + rng.normal(0, 0.02, 400), 0, 1)
    question = spare_columns.second_set(rows_of(p, y, recalibrated=other))
    assert options_of(question) == [{"probs": "risk"}, {"probs": "recalibrated"}]
    assert spare_columns.second_set(rows_of(p, y, named=["probs"], recalibrated=other)) is None
    assert spare_columns.second_set(rows_of(p, y, x=rng.random(400))) is None


def test_predictions_of_another_event_are_asked_about_with_the_column_that_has_as_many():
    p, y, rng = drawn(6000, seed=4)
    rare = 0.05 * p
    z = (rng.random(6000) < rare).astype(int)
    columns = {"p_click": p, "purchase": z, "age": rng.integers(20, 90, 6000)}
    question = spare_columns.crossed_events(rows_of(rare, y, **columns))
    assert options_of(question) == [{"probs": "p_click"}, {"label": "purchase"}]
    assert question.asks
    assert spare_columns.crossed_events(rows_of(rare, z, p_click=p, click=y)) is None
    assert spare_columns.crossed_events(rows_of(p, y, p_buy=rare, purchase=z)) is None
    assert spare_columns.crossed_events(rows_of(rare, y, age=columns["age"])) is None


def test_predictions_of_another_event_in_a_sample_are_told_by_its_weights():
    rng = np.random.default_rng(5)
    p = rng.beta(1.0, 30.0, 60_000)
    y = (rng.random(60_000) < p).astype(int)
    z = y * (rng.random(60_000) < 0.1)
    kept = (y == 1) | (rng.random(60_000) < 0.1)
    p, y, z, weight = p[kept], y[kept], z[kept], np.where(y == 1, 1, 10)[kept]
    question = spare_columns.crossed_events(rows_of(p, z, pcvr=0.1 * p, click=y, weight=weight))
    assert options_of(question) == [
        {"probs": "pcvr", "weights": "weight"}, {"label": "click", "weights": "weight"}
    ]  # fmt: skip
    assert spare_columns.crossed_events(rows_of(p, y, pcvr=0.1 * p, weight=weight)) is None


def test_a_second_family_of_columns_is_asked_about():
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    columns = {f"raw_{k}": probs[::-1, k] for k in range(3)}
    rows = rows_of(probs, np.zeros(300, dtype=int), said={"probs": "p0, p1, p2"}, **columns)
    assert options_of(spare_columns.second_set(rows))[1] == {"probs": "raw_0, raw_1, raw_2"}


def test_rows_in_no_cluster_count_one_by_one_in_the_design_effect():
    part, pairs = np.ones(6), np.array([0, 0, -1, -1, -1, -1])
    assert design_effect(part, [pairs]) == (2**2 + 4) / 6
    assert design_effect(part, [np.full(6, -1)]) == 1.0
    assert design_effect(part, [pairs, np.zeros(6, int)]) == 6.0


def test_cumulative_columns_are_asked_about_with_their_differences():
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    question = doubts.cumulative(probs.cumsum(axis=1), ["c1", "c2", '"c 3"'])
    assert options_of(question) == [{"probs": 'c1, c2 - c1, "c 3" - c2'}]
    assert doubts.cumulative(probs, ["a", "b", "c"]) is None
    assert doubts.cumulative(np.eye(3)[:, ::-1][[0, 0, 0]], ["a", "b", "c"]) is None


def test_columns_with_the_words_of_the_label_may_be_the_predicted_class():
    answer = Column.of("answer", np.array(["class=a", "class=b"]))
    other = Column.of("site", np.array(["x", "y"]))
    readings = doubts.predicted_class_readings(["A", "B"], [answer, other], "p")
    assert [dict(r.options) for r in readings] == [{"predicted_label": "answer"}]


def followed(n=400, seed=0, swap=False):
    """Return calibrated risks by time 5 with follow-up, perhaps with swapped codes."""
    p, _, rng = drawn(n, seed)
    time = rng.exponential(-5.0 / np.log1p(-np.clip(p, 1e-3, 1 - 1e-3)))
    lost = rng.uniform(2.0, 12.0, n)
    event = (time <= lost) != swap
    return p, ct.Followup(np.minimum(time, lost), event.astype(int), horizon=5)


def test_swapped_codes_of_censoring_are_asked_about():
    p, seen = followed(swap=True)
    asked = doubts.doubts_of_followup(p, seen, said={"probs": "risk", "event": "status"})
    assert [q.guard for q in asked] == ["swapped censoring"]
    assert options_of(asked[0]) == [{"event": "NOT status"}]


def test_survival_in_the_place_of_risk_is_asked_about():
    p, seen = followed()
    assert doubts.doubts_of_followup(p, seen) == ()
    asked = doubts.doubts_of_followup(1.0 - p, seen, said={"probs": "surv", "event": "died"})
    assert options_of(asked[0]) == [{"probs": "1 - surv"}]


def test_a_time_beside_a_label_is_asked_about_if_the_label_was_named():
    p, y, rng = drawn()
    years = rng.exponential(5.0, 400)
    question = ends.follow_up(rows_of(p, y, named=["label"], years=years))
    assert question.asks
    assert options_of(question) == [
        {"label": None, "event": "died", "time": "years", "horizon": "NUMBER"}
    ]
    assert not ends.follow_up(rows_of(p, y, years=years)).asks
    assert ends.follow_up(rows_of(p, y, age=years)) is None
    assert ends.follow_up(rows_of(p, y, time=rng.integers(0, 5, 400))) is None


TIMES = "Zeit_Jahre Beobachtungsdauer Monate tiempo_anos años durée_suivi mois tempo tijd_in_dagen"
TIMES += " FU t_event SurvivalMonths followup_days"


@pytest.mark.parametrize("name", TIMES.split())
def test_times_are_known_by_words_of_several_languages(name):
    assert ends.called_time(name)


@pytest.mark.parametrize("name", ["age_years", "Alter_Jahre", "tenure", "site", "bmi", "rating"])
def test_ages_and_features_are_not_called_times(name):
    assert not ends.called_time(name)


@pytest.mark.parametrize("name", ["x7", "相談"])
def test_a_time_that_is_called_otherwise_is_asked_about_by_its_cells(name):
    p, seen = followed(n=1000, seed=5)
    question = ends.follow_up(rows_of(p, seen.event, **{name: seen.time}))
    assert question.asks
    assert question.text.startswith(f"rows with the event have lower values of {name}")
    months = np.ceil(12 * seen.time).astype(int)
    assert ends.follow_up(rows_of(p, seen.event, **{name: months})).asks


def test_a_protective_feature_of_a_model_is_no_time():
    rng = np.random.default_rng(6)
    x, a = rng.gamma(2.0, 10.0, 2000), rng.normal(size=2000)
    logit = a - 1.2 * np.log(x) + 2.4
    p = 1 / (1 + np.exp(-logit))
    y = (rng.random(2000) < p).astype(int)
    assert not ends.like_time(rows_of(p, y), Column.of("tenure", x))
    too_high = np.minimum(1.5 * p, 0.99)
    assert not ends.like_time(rows_of(too_high, y), Column.of("tenure", x))
    without = 1 / (1 + np.exp(-a + 1.0))
    assert not ends.like_time(rows_of(without, y), Column.of("tenure", x))


def test_numbers_that_set_events_apart_are_no_times():
    p, y, rng = drawn()
    distance = np.where(y == 1, rng.uniform(0, 5, 400), rng.uniform(5, 9, 400))
    assert not ends.like_time(rows_of(p, y), Column.of("distance", distance))


def test_numbers_that_are_low_in_events_look_like_times():
    p, seen = followed(seed=2)
    rows = rows_of(p, seen.event)
    assert ends.like_time(rows, Column.of("dauer", seen.time))
    assert not ends.like_time(rows, Column.of("x", np.random.default_rng(0).random(400) * 9))


def test_outcomes_of_one_value_that_are_alike_are_doubted():
    rng = np.random.default_rng(4)
    patient = np.repeat(np.arange(100), 5)
    effect = np.repeat(rng.normal(size=100), 5)
    p = rng.beta(2, 2, 500)
    y = (rng.random(500) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - 1.5 * effect))).astype(int)
    question = spare_columns.dependent_rows(rows_of(p, y, patient=patient))
    assert not question.asks
    assert options_of(question) == [{"clusters": "patient"}]
    assert spare_columns.dependent_rows(rows_of(p, y, clusters=patient)) is None
    free = (rng.random(500) < p).astype(int)
    assert spare_columns.dependent_rows(rows_of(p, free, patient=patient)) is None


def test_forecasts_of_many_dates_are_revisions_and_not_read_by_one_date():
    rng = np.random.default_rng(7)
    case, step = np.repeat(np.arange(60), 12), np.tile(np.arange(12), 60)
    p, y = rng.random(720), np.repeat(rng.integers(0, 2, 60), 12)
    days = np.datetime64("2024-01-01") + case + step
    question = spare_columns.repeated_rows(rows_of(p, y, case=case, day=days.astype(str)))
    revised = {"ids": "case", "time": "day", "label": None}
    assert options_of(question) == [revised, {"clusters": "case"}]
    assert question.readings[0].verb == "revisions"
    question = spare_columns.repeated_rows(rows_of(p, y, case=case, day=days[step].astype(str)))
    assert [[*options] for options in options_of(question)] == [
        ["where"], ["ids", "time", "label"], ["by", "clusters"], ["clusters"]
    ]  # fmt: skip


def wrong_along(x, seed=5, rise=1.2):
    """Return predictions that are right on average, and outcomes that rise along numbers x."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 4, len(x))
    odds = np.log(p / (1 - p)) + rise * (x - x.mean()) / x.std()
    return p, (rng.random(len(x)) < 1 / (1 + np.exp(-odds))).astype(int)


@pytest.mark.parametrize("name", ["age", "amount", "decade"])
def test_numbers_along_which_residuals_rise_are_a_feature_and_no_clusters(name):
    rng = np.random.default_rng(5)
    draw = {
        "age": rng.integers(20, 90, 2500),
        "amount": np.round(np.exp(rng.normal(4.0, 0.8, 2500))),
        "decade": rng.integers(0, 12, 2200),
    }
    x = draw[name].astype(int)
    p, y = wrong_along(x)
    question = spare_columns.dependent_rows(rows_of(p, y, **{name: x}))
    assert (question.guard, question.asks, question.explains) == ("feature", False, True)
    assert options_of(question) == [{"clusters": name}]
    assert "segment_search" in question.text
    [doubt] = doubts.answered([question])
    assert (doubt.clusters, doubt.perhaps) == ("", name)
    assert type(doubts.answered([question], as_is=True)[0]) is str


@pytest.mark.parametrize("seed", range(4, 9))
def test_days_whose_outcomes_depend_on_those_before_leave_a_rejection_in_doubt(seed):
    rng = np.random.default_rng(seed)
    effect = np.zeros(60)
    for day in range(1, 60):
        effect[day] = 0.8 * effect[day - 1] + 0.6 * rng.normal()
    days = rng.permutation(np.repeat(np.arange(60), 10))
    p = rng.uniform(0.05, 0.95, 600)
    y = (0.6**0.5 * rng.normal(size=600) + 0.4**0.5 * effect[days] < ndtri(p)).astype(int)
    question = spare_columns.dependent_rows(rows_of(p, y, day=days))
    assert question.guard in ("feature", "dependent rows")
    [doubt] = doubts.answered([question])
    assert isinstance(doubt, DependenceDoubt)


@pytest.mark.parametrize("drift", [0.0, 0.5])
def test_numbered_patients_are_clusters_though_outcomes_drift_along_their_numbers(drift):
    rng = np.random.default_rng(6)
    number = rng.permutation(np.repeat(np.arange(1000, 1300), 6))
    p, y = wrong_along(number, rise=drift)
    effect = rng.normal(size=300)[number - 1000]
    y = np.where(effect > 1.0, 1, np.where(effect < -1.0, 0, y))
    question = spare_columns.dependent_rows(rows_of(p, y, patient=number))
    assert options_of(question) == [{"clusters": "patient"}]


def test_numbers_from_which_the_outcome_follows_are_no_clusters():
    p, y, rng = drawn(3000)
    days = np.where(y == 1, rng.integers(90, 200, 3000), rng.integers(0, 60, 3000))
    question = spare_columns.dependent_rows(rows_of(p, y, max_dpd=days))
    assert question.guard == "feature"
    assert "may have become known" in question.text


@pytest.mark.parametrize("flag", ["matured", "x"])
def test_rows_whose_outcomes_are_not_known_to_their_end_are_doubted(flag):
    p, y, rng = drawn(4000)
    month = np.array([f"2023-{k:02d}" for k in rng.integers(1, 13, 4000)])
    old = month < "2023-07"
    seen = np.where(old, y, y * (rng.random(4000) < 0.7))
    columns = {flag: old.astype(int), "month": month, "sex": rng.integers(0, 2, 4000)}
    question = spare_columns.immature_rows(rows_of(p, seen, **columns))
    assert options_of(question) == [{"where": f"{flag} = 1"}]
    assert not question.asks
    assert spare_columns.immature_rows(rows_of(p, y, **columns)) is None
    assert spare_columns.immature_rows(rows_of(p, seen, sex=columns["sex"], x=old * 1)) is None


@pytest.mark.slow
def test_few_items_of_rare_events_are_seldom_doubted():
    """Of 4000 sets of 50 items with two independent answers each; one variance for all: 13."""
    rng, item, doubted = np.random.default_rng(50), np.repeat(np.arange(50), 2), 0
    for _ in range(4000):
        p = 1.0 / (1.0 + np.exp(-rng.normal(-4.5, 2.0, 50)))[item]
        y = (rng.random(100) < p).astype(int)
        rows = Rows(p, y, unused=(Column("item", item),))
        doubted += spare_columns.dependent_rows(rows) is not None
    assert doubted <= 4  # 1 in 1000


def test_a_column_that_follows_from_the_predictions_is_no_cluster():
    rng = np.random.default_rng(6)
    probs = rng.dirichlet(np.full(40, 0.2), 2000)
    y = np.where(rng.random(2000) < 0.6, probs.argmax(axis=1), rng.integers(0, 20, 2000))
    rows = rows_of(probs, y, guess=probs.argmax(axis=1))
    assert spare_columns.dependent_rows(rows) is None


def test_outcomes_to_come_are_doubted_above_one_percent():
    assert spare_columns.outcomes_to_come(10, 1000) is None
    assert "11 of 1000 rows have no outcome" in spare_columns.outcomes_to_come(11, 1000).text


@pytest.mark.parametrize(("change", "explains"), [("known early", True), ("slope", False)])
def test_absent_outcomes_explain_a_shift_and_no_wrong_slope(change, explains):
    p, y, rng = drawn(4000)
    absent = np.zeros(4000, dtype=bool)
    if change == "known early":
        absent = (y == 0) & (rng.random(4000) < 0.5)  # events are known first
    else:
        odds = 2.0 * np.log(p / (1.0 - p))
        p = 1.0 / (1.0 + np.exp(-odds))
        absent[:80] = True
    rows = rows_of(p[~absent], y[~absent])
    question = spare_columns.outcomes_to_come(int(absent.sum()), 4000, rows)
    assert question.explains == explains


def test_an_answer_of_as_is_turns_questions_into_notes():
    p, y, rng = drawn()
    asked = spare_columns.questions(rows_of(1.0 - p, y, part=rng.choice(["train", "test"], 400)))
    assert [q.guard for q in asked] == ["train and test", "against the outcomes"]
    with pytest.raises(DoubtfulInputError, match="part separates the rows") as caught:
        doubts.answered(asked)
    assert caught.value.readings == asked[0].readings
    notes = doubts.answered(asked, as_is=True)
    assert len(notes) == 2
    assert all(note.startswith("read as it is, although") for note in notes)


def test_arrays_raise_the_questions_that_need_no_columns():
    p, y, _ = drawn()
    assert doubts.doubts_of_arrays(p, y) == ()
    (question,) = doubts.doubts_of_arrays(1.0 - p, y)
    assert options_of(question) == [{"probs": "1 - probs"}, {"label": "1 - labels"}]
    (question,) = doubts.doubts_of_arrays(p, (p > 0.4).astype(int))
    assert question.guard == "predicted class"
    p, seen = followed(swap=True)
    (question,) = doubts.doubts_of_arrays(p, seen)
    assert options_of(question) == [{"event": "1 - event"}]


def test_many_arrays_are_looked_at_in_part():
    p, y, _ = drawn(200_000)
    two = np.column_stack([1.0 - p, p])
    assert doubts.doubts_of_arrays(two, y) == ()
    (question,) = doubts.doubts_of_arrays(two, 1 - y, weights=np.ones(200_000))
    assert options_of(question)[0] == {"probs": "probs[:, ::-1]"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (np.array(["b", None, "a"], dtype=object), ("b", "a")),
        (np.array([3, 1, 3]), ("1", "3")),
        (np.array([2.0, np.nan, 0.0]), ("0", "2")),
        (np.array([True, False]), ("0", "1")),
    ],
)
def test_columns_are_coded_by_their_values(cells, words):
    column = Column.of("x", cells)
    rows, found = column.coded
    assert found == words
    missing = np.array([c is None or c != c for c in cells.tolist()])
    np.testing.assert_array_equal(rows < 0, missing)
    assert Column.of("y", np.array([0.5, 1.0])).coded is None


def test_names_that_are_no_plain_words_are_quoted():
    assert Column.of('a "b"', np.arange(3)).sql == '"a ""b"""'
    assert Column.of("user", np.arange(3)).sql == "user"


def test_weights_of_rows_that_were_sampled_by_their_outcome_are_asked_about():
    rng = np.random.default_rng(8)
    p = rng.beta(1, 30, 20_000)
    y = (rng.random(20_000) < p).astype(int)
    kept = (y == 1) | (rng.random(20_000) < 0.1)
    p, y = p[kept], y[kept]
    question = spare_columns.unused_weights(rows_of(p, y, n=np.where(y == 1, 1, 10)))
    assert options_of(question) == [{"weights": "n"}]
    assert question.asks
    assert spare_columns.unused_weights(rows_of(p, y, kg=rng.uniform(50, 90, len(y)))) is None
    assert spare_columns.unused_weights(rows_of(p, y, weight=rng.uniform(50, 90, len(y)))) is None
    assert spare_columns.unused_weights(rows_of(p, y, code=1 + y)) is None


def test_candidates_of_one_race_are_asked_about():
    rng = np.random.default_rng(9)
    p = np.round(rng.random(100), 2)
    won = rng.random(100) < p
    both = np.column_stack([p, 1 - p]).ravel(), np.column_stack([won, ~won]).ravel().astype(int)
    question = spare_columns.one_event_each(rows_of(*both, race=np.repeat(np.arange(100), 2)))
    assert options_of(question) == [{"clusters": "race"}]
    assert spare_columns.one_event_each(rows_of(*both, other=np.tile(np.arange(100), 2))) is None
    assert spare_columns.one_event_each(rows_of(p, won * 1, race=np.arange(100))) is None


def three_classes(n=400, seed=5):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet((3.0, 1.0, 2.0), n)
    return probs, (probs.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 2, 0]])
def test_columns_in_another_order_than_the_classes_are_asked_about_with_that_order(order):
    probs, y = three_classes()
    assert doubts.permuted_classes(rows_of(probs, y)) is None
    rows = Rows(probs[:, order], y, arrays=True, said={"probs": "P"})
    (reading,) = doubts.permuted_classes(rows).readings
    back = np.argsort(order).tolist()
    assert reading.options == {"probs": f"P[:, {back}]"}
    assert (probs[:, order][:, back] == probs).all()
    (question,) = doubts.doubts_of_arrays(probs[:, order], y)
    assert question.guard == "permuted classes"


def test_a_useless_model_of_three_classes_has_no_other_order():
    probs, y = three_classes()
    shuffled = np.random.default_rng(0).permutation(probs)
    assert doubts.permuted_classes(rows_of(shuffled, y)) is None
    assert doubts.permuted_classes(rows_of(shuffled[:, ::-1], y)) is None
    assert doubts.doubts_of_arrays(probs, y) == ()


def test_numbers_of_one_half_and_more_are_confidences_where_a_constant_is_likelier():
    p, y, _ = drawn()
    sure = np.maximum(p, 1.0 - p)
    question = doubts.confidences(rows_of(sure, y))
    assert options_of(question) == [{"predicted_label": "COLUMN"}]
    high = 0.5 + p / 2.0
    right = np.random.default_rng(2).random(400) < high
    assert doubts.confidences(rows_of(high, right.astype(int))) is None


def test_events_that_are_rarer_where_confidences_are_high_may_be_of_another_class():
    p, y, _ = drawn()
    rare = (y == 1) & (p < 0.6)
    question = doubts.against_outcomes(rows_of(np.maximum(p, 1.0 - p), rare.astype(int)))
    assert options_of(question)[0] == {"predicted_label": "COLUMN"}


def test_items_that_were_asked_several_times_with_one_prediction_are_clusters():
    rng = np.random.default_rng(8)
    q = rng.beta(3, 2, 300)
    own = rng.beta(0.3 * q, 0.3 * (1.0 - q))  # of mean q: calibrated, and the same for an item
    item, order = np.repeat(np.arange(300), 8), rng.permutation(2400)
    p, names = q[item][order], np.array([f"s{i}" for i in item])[order]
    y = (rng.random(2400) < own[item]).astype(int)[order]
    question = spare_columns.dependent_rows(rows_of(p, y, item=names))
    assert options_of(question) == [{"clusters": "item"}]


@pytest.mark.parametrize("power", [1.0, 1.8])
def test_errors_along_the_predictions_are_no_dependence_of_items(power):
    rng = np.random.default_rng(9)
    q, item = rng.beta(3, 2, 300), np.repeat(np.arange(300), 8)
    y = (rng.random(2400) < q[item] ** power).astype(int)
    assert spare_columns.dependent_rows(rows_of(q[item], y, item=item)) is None
