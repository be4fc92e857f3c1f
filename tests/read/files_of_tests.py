"""Files as programs write them, and what tests of reading ask of them."""

import io
import json
import zipfile

import numpy as np
import pytest

from caltest.errors import InvalidPredictionsError
from caltest.read.files import read_predictions

PROBS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])
LABELS = np.array([0, 1, 2, 0])
ROWS = [[*p, y] for p, y in zip(PROBS.tolist(), LABELS.tolist(), strict=True)]
CSV = "p_0,p_1,p_2,label\n" + "".join(",".join(map(str, row)) + "\n" for row in ROWS)


def check(data, probs=PROBS, labels=LABELS):
    np.testing.assert_allclose(data.probs, probs, rtol=1e-12)
    np.testing.assert_array_equal(data.labels, labels)


def refused(path, message, **choices):
    with pytest.raises(InvalidPredictionsError, match=message) as caught:
        read_predictions(path, **choices)
    said = str(caught.value)
    assert "\n" not in said
    assert said.count(path.name) <= 1
    return caught.value


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def zst(data):
    pyarrow = pytest.importorskip("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def zipped(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def lm_eval(logliks, target, i, **more):
    """One line of samples_*.jsonl of lm-evaluation-harness 0.4.8, as it is saved."""
    options = [" yes", " no", " perhaps", " who knows"][: len(logliks)]
    best = int(np.argmax(logliks))
    return {
        "doc_id": i,
        "doc": {"question": f"question {i}", "choices": [o.strip() for o in options]},
        "target": str(target),
        "arguments": {
            f"gen_args_{k}": {"arg_0": f"Question {i}\nAnswer:", "arg_1": option}
            for k, option in enumerate(options)
        },
        "resps": [[[str(value), "False"]] for value in logliks],
        "filtered_resps": [[str(value), "False"] for value in logliks],
        **{"filter": "none", "metrics": ["acc", "acc_norm"], "prompt_hash": "ab" * 32},
        "doc_hash": f"{i:064x}",
        "acc": float(target in (best, options[best].strip())),
    } | more


def inspect_sample(i, confidence, value, epoch=1, **more):
    """A sample of an Inspect log, schema version 2, scored as its evaluation of HLE does."""
    score = {"value": value, "answer": "x", "metadata": {"confidence": confidence}}
    said = {"input": "question", "target": "x", "messages": [], "output": {"model": "m"}}
    scores = {"judge": score, "other": {"value": 1}} | more
    return {"id": f"q{i}", "epoch": epoch, **said, "scores": scores, "metadata": {}}


def inspect_log(samples):
    header = {"version": 2, "status": "success", "eval": {"task": "t"}}
    members = {"header.json": json.dumps(header), "summaries.json": "[]"}
    return members | {f"samples/{s['id']}_epoch_{s['epoch']}.json": json.dumps(s) for s in samples}


def zst_members(members):
    """A zip whose members are compressed by Zstandard, which zipfile cannot write here."""
    plain = zipped({name: zst(text.encode()) for name, text in members.items()})
    packed = bytearray(plain)
    for signature, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = plain.find(signature)
        while place >= 0:
            packed[place + at] = 93
            place = plain.find(signature, place + 1)
    return bytes(packed)


def helm_instance(i, max_prob, match, perturbation=None, logprob=-1.0, trial=0):
    """An entry of per_instance_stats.json of HELM 0.5."""
    values = {"max_prob": max_prob, "exact_match": match, "logprob": logprob}
    stats = [
        {"name": {"name": name, "split": "test"}, "count": 1, "sum": value, "mean": value}
        for name, value in values.items()
    ]
    own = {"instance_id": f"id{i}", "train_trial_index": trial, "stats": stats}
    return own if perturbation is None else own | {"perturbation": {"name": perturbation}}


SAMPLES = [lm_eval([-1.0, -2.0], 0, 0), lm_eval([-3.0, -1.5, -2.5], 2, 1)]
SAMPLES += [lm_eval([-0.5, -9.0], "no", 2)]
LOG_OF_INSPECT = [
    inspect_sample(0, 0.9, "C"),
    inspect_sample(1, 0.35, "I"),
    inspect_sample(2, 1.0, "C"),
]
