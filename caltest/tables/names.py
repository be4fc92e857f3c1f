"""What columns are called that hold labels, probabilities and other things."""

from __future__ import annotations

import re

#: Names under which labels are found, compared in lower case; the second row if none of the first.
LABELS = (
    ("label", "labels", "y", "y_true", "target", "targets", "outcome", "outcomes"),
    ("true_label", "ground_truth", "actual", "correct_answer", "gold", "correct", "is_correct"),
    (
        *("truth", "true_class", "true_answer", "gold_label", "gold_answer", "observed"),
        *("answer", "y_test", "ref", "reference", "actual_class", "actual_label", "mask", "masks"),
        *("true_labels", "gt", "gts", "groundtruth", "true"),
    ),
)
#: Labels of these names, where there are two, say whether a prediction was right.
SAYS_RIGHT = ("correct", "is_correct", "was_correct", "is_right", "right")
#: Words in names of columns in which somebody says whether a prediction was right.
VERDICTS = {"verdict", "judge", "judged", "judgement", "judgment", "graded", "correctness"}
#: Names of predicted classes.
PREDICTED = {
    *("pred_label", "predicted_label", "predicted", "prediction", "pred", "y_pred", "y_hat"),
    *("pred_class", "predicted_class", "top_label", "top_class", "answer", "model_answer"),
    *("predicted_answer", "llm_answer", "response", "choice", "model_choice", "guess"),
}
#: Names of the probability that a prediction is right.
CONFIDENCE = (
    *("confidence", "confidences", "conf", "max_prob", "certainty", "stated_confidence"),
    *("verbal_confidence", "model_confidence"),
)
#: Names of one column or array that holds all probabilities.
WHOLE = (
    (
        *("p", "prob", "probs", "proba", "probability", "probabilities", "y_prob", "y_pred_proba"),
        *("y_score", "y_proba", "pred_prob", "predicted_prob", "predicted_probability"),
        *("predicted_risk", "pop", "softmax", "sigmoid"),
    ),
    (*CONFIDENCE, "score", "scores", "predictions", "risk", "forecast"),
)
#: Names of what ended a follow-up, which is no label where some were not followed to the horizon.
EVENTS = {"event", "events", "status", "died", "dead", "death"}
#: Words of which one is in names of times, beside which an event may be one of a follow-up.
TIMES = {"time", "times", "years", "months", "weeks", "days", "duration", "survival", "followup"}
#: Words in names of times that are of the row, not of its outcome.
STAYS = {"los", "stay", "age", "tenure", "waiting", "since"}
#: Those of which one says that rows were followed.
FOLLOW_UP = {"follow", "followup", "fu", "survival", "tte", "censoring"}
#: Words in names of the times of rows, not of what they were followed for.
DATES = {"date", "dates", "datum", "datetime", "timestamp", "ts"}
#: Words in names of what is known with the outcome or made of it, which is no feature.
HINDSIGHT = {
    *("target", "gold", "truth", "actual", "observed", "obs", "loss", "pred", "los", "stay"),
    *("fold", "folds", "verdict", "judge", "precip"),
}
#: Names in a table of counts, one row a grade.
COUNTS = {"defaults", "obligors", "pd", "impressions", "anzahl", "schuldner", "obligor", "nombre"}
#: Words of which one is in names of probabilities that are none of these.
PROBABILITIES = {
    *("prob", "probs", "proba", "probability", "risk", "chance"),
    *("confidence", "conf", "certainty", "forecast", "predicted", "prediction", "pred"),
}
#: Those that may be percents without a sign, and words in names of what is no outcome.
SHARES = {*PROBABILITIES, "pop"} - {"forecast", "predicted", "prediction", "pred"}
NO_OUTCOMES = {
    *("fold", "split", "sex", "gender", "group", "treated", "treatment", "male", "female"),
    *("prior", "previous", "past", "history", "last", "baseline", "yesterday", "lag", "lagged"),
    *("station", "site", "region", "country", "city", "hospital", "clinic", "branch"),
    *("language", "lang", "platform", "channel", "version", "model", "season"),
}
#: Words in names of outcomes, which tell one of several columns of 0 and 1.
OUTCOMES = {
    *(EVENTS - {"status"}),
    *("default", "defaulted", "defaults", "churn", "churned", "attrition", "click", "clicked"),
    *("fraud", "fraudulent", "chargeback", "conversion", "converted", "bought", "purchased"),
    *("relapse", "relapsed", "recurrence", "readmission", "readmitted", "deceased", "malignant"),
    *("ausfall", "ereignis", "ergebnis", "rechute", "esito", "resultado", "verdict"),
    *("rain", "rained", "occurred", "happened", "outcome", "label", "target", "truth", "won"),
}
#: Words in names of fractions that are no probabilities.
NO_PROBABILITIES = {
    *("weight", "weights", "threshold", "cutoff", "ratio", "ltv", "dti", "utilization", "discount"),
    *("latency", "seconds", "temperature", "loss", "entropy", "similarity", "distance", "lon"),
}
#: Words that say percent, and those of columns of which it is asked whether they are percents.
PERCENT = {"pct", "percent", "percents", "percentage", "perc", "prozent", "pourcent", "porcentaje"}
PERCENTS = {*SHARES, *PERCENT, "share", "score", "likelihood"}
#: Names of a column that says whose forecasts rows are.
MODELS = ("model", "model_name", "model_id", "classifier", "forecaster", "algorithm", "llm")
#: What families of columns, one a class, begin with: ``p_cat``, ``p1``; also bare numbers.
FAMILIES = ("p", "prob", "probs", "proba")

#: Words in names of columns that name rows, where each value occurs once.
IDS = {
    *("id", "ids", "uid", "uuid", "guid", "key", "image", "img", "file", "filename", "path"),
    *("sample", "example", "case", "item", "question", "transaction", "txn", "index", "row"),
}
#: Words in names of columns of those who may have several rows, which then depend on each other.
OWNERS = {
    *("patient", "subject", "customer", "client", "user", "account", "session", "member"),
    *("household", "player", "device", "visitor", "borrower", "document", "doc", "kunde"),
}
#: Names of a column that says how much rows count; "weight" alone may be that of a body.
WEIGHTS = {
    *("sample_weight", "sample_weights", "sampling_weight", "sampling_weights", "survey_weight"),
    *("row_weight", "case_weight", "inverse_probability_weight", "ipw", "ipcw", "weights"),
}
#: Words in names of amounts, of which an event is a comparison with a number.
AMOUNTS = {
    *("precip", "precipitation", "rain", "rainfall", "mm", "inches", "dpd", "amount", "days"),
    *("score", "rating", "obs", "observed", "delinquent", "overdue", "arrears"),
}
#: Words in names of columns that may say which rows belong together, when, and for how long.
FACTS = {
    *(IDS | DATES | TIMES | FOLLOW_UP),
    *("patient", "subject", "customer", "client", "user", "cluster", "group", "site", "hospital"),
    *("center", "centre", "doctor", "reader", "station", "account", "document", "doc", "session"),
    *("fold", "split", "weight", "weights", "month", "year", "day", "kunde", "kundennummer"),
}


def key(name: str) -> str:
    """Return a name as the lists above have them: "True class?" is "true_class"."""
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")


def words(name: str) -> list[str]:
    """Return the words of a name in lower case: "risk_5y" and "Risk 5y" have "risk" and "y"."""
    parts = re.findall(r"[A-ZÀ-Þ]+(?![a-zß-ÿ])|[A-ZÀ-Þa-zß-ÿ][a-zß-ÿ]*", name)
    return [part.lower() for part in parts]


def in_hindsight(name: str) -> bool:
    """Say whether a name says that a column is known with the outcome, or weighs it: no feature."""
    return bool(HINDSIGHT & {*words(name)}) or key(name) in {*WEIGHTS, *SAYS_RIGHT}


def says_percent(name: str) -> bool:
    """Say whether a name says that a column is in percent."""
    return "%" in name or bool(PERCENT & {*words(name)}) or "pc" in key(name).split("_")


def percent_above(name: str) -> float:
    """Return above which number a column holds percents by its name, infinity without a word of it.

    A name that says percent leaves no doubt above 1; others may be of a scale up to 10.
    """
    if says_percent(name):
        return 1.0
    return 10.0 if SHARES & {name.lower(), *words(name)} else float("inf")
