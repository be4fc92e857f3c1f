"""What programs that evaluate language models log, brought into columns.

Layouts: samples of lm-evaluation-harness 0.4, logs of Inspect (schema version 2), and
``per_instance_stats.json`` of HELM 0.5.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caltest._base.arrays import FloatArray
from caltest.errors import InvalidPredictionsError
from caltest.read.formats import Table, of_arrays, unzst

Records = list[dict[str, Any]]


#: Columns of a log by name, and notes.
Log = tuple[Mapping[str, ArrayLike], list[str]]


_KEYS = {"inspect": {"eval", "samples"}, "lm-eval": {"doc_id", "filtered_resps"}}


_KEYS |= {"helm": {"instance_id", "stats"}}


def log_format(content: object) -> str | None:
    """Return which log JSON is, if it is one."""
    first = content[0] if isinstance(content, list) and content else content
    if not isinstance(first, dict):
        return None
    if "request_states" in first:
        raise InvalidPredictionsError(
            "these are HELM's requests: read per_instance_stats.json, which lies beside this file"
        )
    return next((name for name, keys in _KEYS.items() if keys <= set(first)), None)


def read_log(table: Table, per_character: bool) -> Table:
    """Return the log of a harness as a table of columns that the contract reads."""
    named = None if table.log == "?" else table.log
    log = named or log_format(table.content)
    if log is None:
        raise InvalidPredictionsError("this is neither a table nor a log that is known")
    try:
        if log == "lm-eval":
            columns, notes = _lm_eval(table.name, _records(table.content), per_character)
        elif log == "helm":
            columns, notes = _helm(_records(table.content))
        else:
            zipped = isinstance(table.content, Path)
            samples = _samples(table.content) if zipped else table.content["samples"]
            columns, notes = _inspect(samples)
    except InvalidPredictionsError:
        raise
    except Exception as error:  # whatever a damaged log makes of its reader
        reason = f"{type(error).__name__}: {error}"
        raise InvalidPredictionsError(f"this is not a readable log of {log} ({reason})") from None
    arrays = {name: np.asarray(cells) for name, cells in columns.items()}
    frame = of_arrays(arrays).lazy()
    return replace(table, frame=frame, log=log, notes=(*table.notes, *notes), content=None)


def _records(content: Any) -> Records:
    return content if isinstance(content, list) else [content]


def _ids(records: Records, *keys: str) -> list[str]:
    """Return the first of the keys, or of all together, that names every row differently."""
    for chosen in (*((key,) for key in keys), keys):
        ids = [" ".join(str(record[key]) for key in chosen if key in record) for record in records]
        if "" not in ids and len(set(ids)) == len(ids):
            return ids
    raise InvalidPredictionsError(f"rows are not told apart by {' and '.join(keys)}")


def _lm_eval(name: str, records: Records, per_character: bool) -> Log:
    """Softmax over the log-likelihoods of the options; the target is the right one."""
    filters = {str(record.get("filter")) for record in records}
    if len(filters) > 1:
        raise InvalidPredictionsError(
            f"there are samples of {len(filters)} filters ({', '.join(sorted(filters))}): keep the "
            "lines of one"
        )
    counts = [len(record["filtered_resps"]) for record in records]
    probs, labels = np.zeros((len(records), max(counts))), np.zeros(len(records), dtype=np.int64)
    for row, record in enumerate(records):
        answers = record["filtered_resps"]
        if counts[row] < 2 or not all(isinstance(a, list) and len(a) == 2 for a in answers):
            raise InvalidPredictionsError(
                f"row {row + 1} does not hold log-likelihoods of two options or more: text that "
                "was generated has no probability"
            )
        if "acc_mutual_info" in record:
            raise InvalidPredictionsError("log-likelihoods for acc_mutual_info cannot be read")
        logits = np.array([float(answer[0]) for answer in answers])
        labels[row] = _target(record, row, logits)
        if per_character:
            logits /= [len(option) for option in _options(record)]
        weights = np.exp(logits - logits.max())
        probs[row, : counts[row]] = weights / weights.sum()
    task = re.match(r"samples_(.+?)(_\d{4}-\d\d-\d\dT|\.jsonl)", name)
    name = task[1] if task else name
    tasks = np.array([record.get("task_name", name) for record in records])
    divided = "each divided by the characters of its option"
    scale = divided if per_character else "not length-normalised"
    notes = [f"softmax of the options' log-likelihoods, {scale}"]
    if fewer := sum(count < max(counts) for count in counts):
        notes.append(f"{fewer} rows have fewer options: absent ones have probability 0")
    ids = _ids(records, "doc_hash", "doc_id")
    return {"probs": probs, "label": labels, "task": tasks, "id": ids}, notes


def _options(record: dict[str, Any]) -> list[str]:
    arguments = record["arguments"]
    pairs = arguments.values() if isinstance(arguments, dict) else arguments
    return [(p["arg_1"] if isinstance(p, dict) else p[1]).strip() for p in pairs]


def _target(record: dict[str, Any], row: int, logits: FloatArray) -> int:
    """Return the number of the right option, and check it against ``acc``."""
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


def _helm(records: Records) -> Log:
    """Read the largest probability, and whether that answer was an exact match."""
    unperturbed = [record for record in records if record.get("perturbation") is None]
    stats = [{stat["name"]["name"]: stat for stat in record["stats"]} for record in unperturbed]
    if not all({"max_prob", "exact_match"} <= set(row) for row in stats):
        raise InvalidPredictionsError(
            "not all instances have max_prob and exact_match: this metric says nothing of how "
            "confident the model was"
        )
    logged = [row["logprob"]["sum"] for row in stats if "logprob" in row]
    if logged and not any(logged):
        raise InvalidPredictionsError(
            "all log-probabilities are 0: the model gave none, and its max_prob means nothing"
        )
    columns: dict[str, ArrayLike] = {
        "confidence": [float(row["max_prob"]["mean"]) for row in stats],
        "correct": [int(row["exact_match"]["mean"]) for row in stats],
        "id": _ids(unperturbed, "instance_id", "train_trial_index"),
    }
    out = len(records) - len(unperturbed)
    notes = ["max_prob as the probability of an exact match"]
    notes += [f"left out {out} rows with perturbed input"] if out else []
    return columns, notes


def _samples(path: Path) -> Records:
    """Return the samples of an ``.eval`` file, a zip of JSON, in newer versions by Zstandard."""
    samples = []
    with path.open("rb") as file, zipfile.ZipFile(file) as log:
        for member in log.infolist():
            if not re.fullmatch(r"samples/.+\.json", member.filename):
                continue
            if member.compress_type != 93:
                samples.append(json.loads(log.read(member)))
                continue
            file.seek(member.header_offset + 26)  # the local header ends in name and extra field
            name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
            file.seek(name + extra, 1)
            samples.append(json.loads(unzst(file.read(member.compress_size))))
    return samples


def _inspect(samples: Records) -> Log:
    """Read the confidence that a scorer keeps beside its score."""
    samples = sorted(samples, key=lambda s: (s["epoch"], str(s["id"])))
    by_scorer = [sample.get("scores") or {} for sample in samples]
    every = (item for scores in by_scorer for item in scores.items())
    scorers = sorted({n for n, score in every if "confidence" in (score.get("metadata") or {})})
    if len(scorers) != 1:
        raise InvalidPredictionsError(
            f"{len(scorers)} scorers keep a confidence in the metadata of their scores"
            f"{''.join(f', {name}' for name in scorers)}: one is needed"
        )
    scores = [scores.get(scorers[0]) or {} for scores in by_scorer]
    confidences = [(score.get("metadata") or {}).get("confidence") for score in scores]
    stated = np.array(confidences, dtype=np.float64)  # None becomes NaN
    percent = bool((stated > 1.0).any())
    columns: dict[str, ArrayLike] = {
        "confidence": stated / 100.0 if percent else stated,
        "correct": [_right(score.get("value")) for score in scores],
        "id": _ids(samples, "id", "epoch"),
        "sample": [str(sample["id"]) for sample in samples],
    }
    scale = ", in percent" * percent
    remark = f"confidence of the scorer {scorers[0]}{scale}, as the probability that its score is C"
    return columns, [remark]


def _right(value: object) -> float:
    points = {"C": 1.0, 1: 1.0, "I": 0.0, 0: 0.0, None: np.nan}
    if value not in points:
        raise InvalidPredictionsError(f"the score {value!r} is neither C or 1 nor I or 0")
    return points[value]
