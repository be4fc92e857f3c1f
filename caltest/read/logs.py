"""Logs of programs that evaluate language models, as tables that the contract reads.

Layouts: samples of lm-evaluation-harness 0.4, logs of Inspect (schema version 2), and
``per_instance_stats.json`` of HELM 0.5. Columns are ``p0``, ``p1``, … and ``label``, or
``confidence`` and ``correct``; ``id`` names the row, ``sample`` what was asked, ``task`` its task,
``epoch`` or ``trial`` which of several answers to it the row is.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._base.arrays import FloatArray
from caltest._base.written import several
from caltest.errors import InvalidPredictionsError, Reading
from caltest.read.expressions import quoted, terms_of
from caltest.read.formats import Table, unzst

if TYPE_CHECKING:
    from caltest.read.contract import Wanted

Records = list[dict[str, Any]]


#: Columns of a log by name, and notes.
Log = tuple[Mapping[str, Sequence[Any]], list[str]]


#: Keys by which records of a log are known.
LOG_RECORDS = {
    "inspect": {"eval", "samples"},
    "lm-eval": {"doc_id", "filtered_resps"},
    "helm": {"instance_id", "stats"},
}


#: Compression method of Zstandard in zip files.
ZSTANDARD = 93


#: Scores of Inspect: correct, incorrect, no answer.
INSPECT_SCORES = {"C": 1, "I": 0, "N": 0, 1: 1, 0: 0}


def log_format(content: object) -> str | None:
    """Return the name of the evaluation harness that wrote a parsed JSON.

    It is "lm-eval", "helm" or "inspect"; None for other content. InvalidPredictionsError for the
    requests of HELM, which have no outcomes.
    """
    record = content[0] if isinstance(content, list) and content else content
    if not isinstance(record, dict):
        return None
    if "request_states" in record:
        raise InvalidPredictionsError(
            "these are HELM's requests: read per_instance_stats.json, which lies beside this file"
        )
    return next((name for name, keys in LOG_RECORDS.items() if keys <= record.keys()), None)


def read_log(table: Table, wanted: Wanted) -> Table:
    """Return the log of an evaluation harness as a table that can be read without options.

    ``table`` has the parsed JSON, or the path of an archive, in ``content``; ``wanted`` has the
    options of :func:`read_predictions`. The result is an open table, a lazy polars frame, with the
    columns ``p0``, …, or ``confidence``, and ``label`` or ``correct``, ``id`` and ``sample``.
    InvalidPredictionsError for a log that is not known or damaged.
    """
    import polars as pl

    log = log_format(table.content) if table.log == "?" else table.log
    if log is None:
        raise InvalidPredictionsError("this is neither a table nor a log that is known")
    content = table.content
    try:
        if log == "inspect":
            zipped = isinstance(content, Path)
            columns, notes = _inspect(
                *(_unzipped(content) if zipped else _samples(content)), wanted
            )
        else:
            records = content if isinstance(content, list) else [content]
            lm_eval = log == "lm-eval"
            columns, notes = _lm_eval(table.name, records, wanted) if lm_eval else _helm(records)
        frame = pl.DataFrame(columns, strict=False)
    except InvalidPredictionsError:
        raise
    except Exception as error:  # whatever a damaged log makes of its reader
        reason = f"{type(error).__name__}: {error}"
        raise InvalidPredictionsError(f"this is not a readable log of {log} ({reason})") from None
    return replace(
        table, frame=frame.lazy(), log=log, notes=(*table.notes, *notes), content=None
    )  # fmt: skip


def clusters_of_log(table: Table) -> str | None:
    """Return "sample" if some samples of a log have several rows, which then depend; else None.

    ``table`` is the open table (rows as a lazy polars frame); it is None also for tables that are
    no log. "sample" is the column that names the samples.
    """
    if not table.log or "sample" not in table.schema:
        return None
    samples = table.frame.select("sample").collect()["sample"]
    return "sample" if samples.n_unique() < samples.len() else None


def of_repeated_samples(table: Table, wanted: Wanted) -> tuple[str | None, str]:
    """Return (role, note) for a log in which samples have several rows.

    ``table`` is the open table (rows as a lazy polars frame) of the log, ``wanted`` has the options
    of :func:`read_predictions`. The role, one of these options, is "items" if answers are votes on
    one prediction of the sample (Inspect), else "clusters". In other logs the outcome of a sample
    is its right option, which no repetition draws anew. Answers that never differ, such as those at
    temperature 0, are copies. Without repeats it is (None, "").
    """
    import polars as pl

    frame = table.frame
    if wanted.where is not None:
        frame = frame.filter(terms_of(wanted.where, table.schema)[0].expr)
    if clusters_of_log(replace(table, frame=frame)) is None:
        return None, ""
    samples = frame.group_by("sample").agg(pl.len()).collect()
    rows = several(int(samples["len"].sum()), "row")
    head = f"{rows} of {several(samples.height, 'sample')}"
    if table.log != "inspect" or "confidence" not in table.schema or wanted.probs is not None:
        return "clusters", f"{head}, whose rows are a cluster each"
    spread = frame.group_by("sample").agg(pl.col("confidence", "correct").n_unique()).collect()
    differ = int((spread["confidence"] > 1).sum())
    if differ:
        note = f"{head}, whose rows are a cluster each: confidence differs between the rows of "
        return "clusters", f"{note}{several(differ, 'sample')}, so that they are no votes on one"
    if (spread["correct"] == 1).all():
        return "clusters", f"{head}, whose rows are a cluster each: answers to a sample are alike"
    return "items", f"{head}, whose rows are votes on one confidence each"


def refuse_repeated_samples(table: Table, wanted: Wanted) -> None:
    """Raise InvalidPredictionsError for a log with repeated samples, if it is to be tallied.

    ``table`` is the open table (rows as a lazy polars frame) of the log, and ``wanted`` has the
    options of :func:`read_predictions`, of which ``where`` counts. A tally has sums over rows,
    which do not know clusters.
    """
    frame = table.frame
    if wanted.where is not None:
        frame = frame.filter(terms_of(wanted.where, table.schema)[0].expr)
    kept = replace(table, frame=frame)
    if clusters_of_log(kept) is None:
        return
    which = next((name for name in ("epoch", "trial") if name in table.schema), None)
    first = [] if which is None else [f"{which} = {frame.select(which).min().collect().item()}"]
    raise InvalidPredictionsError(
        "samples have several rows, which depend, and sums over rows do not allow for it: keep one "
        "of each, or test the rows themselves, which are then clusters",
        [Reading({"where": where}, "one row of each sample is meant") for where in first],
    )


def _ids(records: Records, *keys: str) -> list[str]:
    """Return an id for each record: of the first unique key, else of all keys joined.

    ``records`` are the samples as dictionaries of JSON, ``keys`` the names of the entries that may
    identify them. InvalidPredictionsError if these do not tell the records apart either.
    """
    for chosen in (*((key,) for key in keys), keys):
        ids = [" ".join(str(record[key]) for key in chosen if key in record) for record in records]
        if "" not in ids and len(set(ids)) == len(ids):
            return ids
    raise InvalidPredictionsError(f"rows are not told apart by {' and '.join(keys)}")


# ------------------------------------------------------------------------------
# lm-evaluation-harness.


def _lm_eval(name: str, records: Records, wanted: Wanted) -> Log:
    """Return (columns, notes) of an lm-evaluation-harness log: its rows, as lists by column name.

    Columns ``p0``, … are the softmax of the log-likelihoods of the options; ``label`` is the index
    of the right option; ``task``, ``id`` and ``sample`` name the rows. ``name`` is the file's name,
    ``records`` are the samples as dictionaries, and ``wanted`` has the options of
    :func:`read_predictions`. InvalidPredictionsError for samples of several filters, unless
    ``where`` selects one.
    """
    filters = sorted({str(record.get("filter")) for record in records})
    if len(filters) > 1 and "filter" not in (wanted.where or ""):
        raise InvalidPredictionsError(
            f"there are samples of {len(filters)} filters ({', '.join(filters)}), which are "
            "several predictions of one row",
            [
                Reading({"where": f"\"filter\" = '{f}'"}, f"the filter {f} is meant")
                for f in filters
            ],
        )
    counts = [len(record["filtered_resps"]) for record in records]
    probs, labels = np.zeros((len(records), max(counts))), []
    for row, record in enumerate(records):
        logits = _logits(record, row)
        labels.append(_target(record, row, logits))
        if wanted.per_character:
            logits = logits / [len(option) for option in _options(record)]
        weights = np.exp(logits - logits.max())
        probs[row, : counts[row]] = weights / weights.sum()
    match = re.match(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT|\.jsonl)", name)
    task = match[1] if match else name
    tasks = [str(record.get("task_name", task)) for record in records]
    divided = "each divided by the characters of its option"
    scale = divided if wanted.per_character else "not length-normalised"
    notes = [f"softmax of the options' log-likelihoods, {scale}"]
    if fewer := sum(count < max(counts) for count in counts):
        rows = "1 row has" if fewer == 1 else f"{fewer} rows have"
        notes.append(f"{rows} fewer options: absent ones have probability 0")
    keys = ("doc_hash", "doc_id", "filter") if len(filters) > 1 else ("doc_hash", "doc_id")
    samples = [
        str(record.get("doc_hash") or f"{t} {record['doc_id']}")
        for record, t in zip(records, tasks, strict=True)
    ]
    columns: dict[str, Sequence[Any]] = {f"p{k}": p for k, p in enumerate(probs.T.tolist())}
    columns |= {"label": labels, "task": tasks, "id": _ids(records, *keys), "sample": samples}
    if len(filters) > 1:
        columns["filter"] = [str(record.get("filter")) for record in records]
    return columns, notes


def _logits(record: dict[str, Any], row: int) -> FloatArray:
    """Return the log-likelihoods of a sample's K options, (K,).

    ``record`` is the sample as a dictionary of JSON, and ``row`` its number, from 0, in messages.
    InvalidPredictionsError for generated text, which has no options.
    """
    answers = record["filtered_resps"]
    if len(answers) < 2 or not all(isinstance(a, list) and len(a) == 2 for a in answers):
        raise InvalidPredictionsError(
            f"row {row + 1} does not hold log-likelihoods of two options or more: text that was "
            "generated has no probability"
        )
    if "acc_mutual_info" in record:
        raise InvalidPredictionsError("log-likelihoods for acc_mutual_info cannot be read")
    return np.array([float(answer[0]) for answer in answers])


def _options(record: dict[str, Any]) -> list[str]:
    arguments = record["arguments"]
    pairs = arguments.values() if isinstance(arguments, dict) else arguments
    return [(p["arg_1"] if isinstance(p, dict) else p[1]).strip() for p in pairs]


def _target(record: dict[str, Any], row: int, logits: FloatArray) -> int:
    """Return the index of the right option of a sample, checked against its accuracy ``acc``.

    ``record`` is the sample as a dictionary of JSON, ``row`` its number in messages, from 0, and
    ``logits`` (K,) are the options' log-likelihoods. InvalidPredictionsError if the accuracy
    contradicts them.
    """
    answer = str(record["target"]).strip()
    target = int(answer) if answer.isdecimal() else _options(record).index(answer)
    best = np.flatnonzero(logits == logits.max())
    right = bool(float(record["acc"])) if "acc" in record else target == best[0]
    if target >= len(logits) or (len(best) == 1 and right != (target == best[0])):
        raise InvalidPredictionsError(
            f"row {row + 1}: the target {answer} does not fit its {len(logits)} options and acc "
            f"{record.get('acc')}"
        )
    return target


# ------------------------------------------------------------------------------
# HELM.


def _helm(records: Records) -> Log:
    """Return (columns, notes) of a HELM log: its rows, as lists by column name.

    ``records`` are the instances as dictionaries of JSON. ``confidence`` is the largest probability
    of an instance, and ``correct`` whether that answer was right; ``id`` and ``sample`` name the
    rows. Instances with perturbed input are left out with a note. InvalidPredictionsError without
    probabilities.
    """
    plain = [record for record in records if record.get("perturbation") is None]
    stats = [{stat["name"]["name"]: stat for stat in record["stats"]} for record in plain]
    if not all({"max_prob", "exact_match"} <= row.keys() for row in stats):
        raise InvalidPredictionsError(
            "not all instances have max_prob and exact_match: this metric says nothing of how "
            "confident the model was"
        )
    logged = [row["logprob"]["sum"] for row in stats if "logprob" in row]
    if logged and not any(logged):
        raise InvalidPredictionsError(
            "all log-probabilities are 0: the model gave none, and its max_prob means nothing"
        )
    columns: dict[str, Sequence[Any]] = {
        "confidence": [float(row["max_prob"]["mean"]) for row in stats],
        "correct": [float(row["exact_match"]["mean"]) for row in stats],
        "id": _ids(plain, "instance_id", "train_trial_index"),
        "sample": [str(record["instance_id"]) for record in plain],
    }
    trials = [record.get("train_trial_index") for record in plain]
    columns |= {"trial": trials} if len({*map(str, trials)}) > 1 else {}
    notes = ["max_prob as the probability of an exact match"]
    if out := len(records) - len(plain):
        notes.append(f"left out {several(out, 'row')} with perturbed input")
    return columns, notes


# ------------------------------------------------------------------------------
# Inspect.


def _samples(content: Mapping[str, Any]) -> tuple[Records, str]:
    """Return (samples, task) of a parsed JSON log of Inspect.

    Samples are a list of dictionaries; the task is its name, "" if it has none.
    """
    return content["samples"], _task(content)


def _task(content: Any) -> str:
    known = content.get("eval") if isinstance(content, dict) else None
    return str(known.get("task") or "") if isinstance(known, dict) else ""


def _unzipped(path: Path) -> tuple[Records, str]:
    """Return (samples, task) of an Inspect ``.eval`` file, which is a zip archive of JSON.

    Samples are a list of dictionaries; the task is its name, "" if it has none.
    """
    samples, task = [], ""
    with path.open("rb") as file, zipfile.ZipFile(file) as log:
        for member in log.infolist():
            sample = member.filename.startswith("samples/") and member.filename.endswith(".json")
            if not sample and member.filename not in ("header.json", "_journal/start.json"):
                continue
            if member.compress_type == ZSTANDARD:
                file.seek(member.header_offset + 26)  # the header ends in name and extra field
                name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
                file.seek(name + extra, 1)
                content = json.loads(unzst(file.read(member.compress_size)))
            else:
                content = json.loads(log.read(member))
            if sample:
                samples.append(content)
            else:
                task = task or _task(content)
    return samples, task


def _inspect(samples: Records, task: str, wanted: Wanted) -> Log:
    """Return (columns, notes) of an Inspect log: its rows, as lists by column name.

    ``confidence`` is the stated confidence, from the metadata of a score, and ``correct`` whether
    the answer was right, for several scorers one such pair each; ``id`` and ``sample`` name the
    rows. ``samples`` are dictionaries, ``task`` is the task's name, and ``wanted`` has the options
    of :func:`read_predictions`. InvalidPredictionsError if no score has a confidence, or several
    scorers have one and ``probs`` names none.
    """
    samples = sorted(samples, key=lambda s: (s["epoch"], str(s["id"])))
    by_scorer = [sample.get("scores") or {} for sample in samples]
    every = (item for scores in by_scorer for item in scores.items())
    scorers = sorted({n for n, score in every if "confidence" in (score.get("metadata") or {})})
    if not scorers:
        raise InvalidPredictionsError(
            "0 scorers keep a confidence in the metadata of their scores: one is needed"
        )
    ends = [""] if len(scorers) == 1 else [f"_{name}" for name in scorers]
    if len(scorers) > 1 and wanted.probs is None:
        raise InvalidPredictionsError(
            f"the scorers {' and '.join(scorers)} keep a confidence each",
            [Reading({"probs": quoted(f"confidence{end}"), "label": quoted(f"correct{end}")},
                     f"the scorer {end[1:]} is meant") for end in ends],
        )  # fmt: skip
    columns: dict[str, Sequence[Any]] = {}
    notes = []
    for scorer, end in zip(scorers, ends, strict=True):
        scores = [scores.get(scorer) or {} for scores in by_scorer]
        columns[f"confidence{end}"] = _confidences(scores)
        columns[f"correct{end}"] = [_right(score, row) for row, score in enumerate(scores)]
        notes.append(f"confidence of the scorer {scorer}, as the probability that its score is C")
        if none := sum(score.get("value") == "N" for score in scores):
            notes.append(f"{several(none, 'row')} without an answer (N) count as not right")
    columns["id"] = _ids(samples, "id", "epoch")
    columns["sample"] = [f"{task} {s['id']}".strip() for s in samples]
    epochs = [int(s["epoch"]) for s in samples]
    columns |= {"epoch": epochs} if len({*epochs}) > 1 else {}
    return columns | ({"task": [task] * len(samples)} if task else {}), notes


def _confidences(scores: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the stated confidence of each score; None where a score has none.

    They are floats, or all text if one is text, for the reader to check. ``scores`` are
    dictionaries of the samples' scores, with the confidence in their "metadata".
    """
    stated = [(score.get("metadata") or {}).get("confidence") for score in scores]
    text = any(isinstance(value, str) for value in stated)
    return [None if v is None else str(v) if text else float(v) for v in stated]


def _right(score: Mapping[str, Any], row: int) -> int | None:
    """Return 1 if an Inspect score says that the answer was right, 0 if not; None without a value.

    ``score`` is the dictionary of the score, and ``row`` the number of the sample, from 0.
    InvalidPredictionsError for other values.
    """
    value = score.get("value")
    if value is None:
        return None
    if isinstance(value, (list, dict)) or value not in INSPECT_SCORES:
        raise InvalidPredictionsError(
            f"row {row + 1}: the score {value!r} is neither C or 1 nor I or 0"
        )
    return INSPECT_SCORES[value]
