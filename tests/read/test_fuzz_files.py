"""Random bytes, and valid files that were damaged: an answer or a sentence."""

import gzip
import io
import json
import sys
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from files_of_tests import CSV, LABELS, PROBS, SAMPLES, helm_instance, inspect_log, zipped
from files_of_tests import LOG_OF_INSPECT as INSPECTED
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import caltest as ct
from caltest.read import FORMATS


def saved(save):
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


def valid_files():
    """One file of every format, and of the packed ones."""
    records = [
        {"probs": p, "label": y} for p, y in zip(PROBS.tolist(), LABELS.tolist(), strict=True)
    ]
    files = {
        "csv": CSV.encode(),
        "json": "\n".join(map(json.dumps, records)).encode(),
        "lm-eval": "\n".join(map(json.dumps, SAMPLES)).encode(),
        "helm": json.dumps([helm_instance(i, 0.75, i % 2) for i in range(3)]).encode(),
        "inspect": zipped(inspect_log(INSPECTED)),
        None: gzip.compress(CSV.encode()),
        "npz": saved(lambda stream: np.savez(stream, probs=PROBS, label=LABELS)),
        "npy": saved(lambda stream: np.save(stream, PROBS)),
    }
    try:
        import openpyxl
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        return files
    table = pyarrow.table({"probs": PROBS.tolist(), "label": LABELS})
    files["parquet"] = saved(lambda stream: parquet.write_table(table, stream))
    stream = io.BytesIO()
    with ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    files["arrow"] = stream.getvalue()
    book = openpyxl.Workbook()
    for line in CSV.splitlines():
        book.active.append(line.split(","))
    files["excel"] = saved(book.save)
    return files


VALID = valid_files()


@st.composite
def damaged(draw, kinds):
    """A valid file after a few cuts, copies and overwritten bytes."""
    kind = draw(st.sampled_from(kinds))
    data = bytearray(VALID[kind])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        piece = draw(st.binary(max_size=6) | st.sampled_from([b"nan", b"-1", b'"', b"{", b"\0"]))
        length = draw(st.sampled_from([0, 1, len(piece), 40]))
        if draw(st.integers(0, 9)) == 0:
            piece = bytes(data[at : at + draw(st.integers(0, 200))])
        data[at : at + length] = piece
    return kind, bytes(data)


def survive(kind, data, **choices):
    """Reading returns predictions that can be trusted, or raises one sentence."""
    stdin = SimpleNamespace(buffer=io.BytesIO(data))
    with mock.patch.object(sys, "stdin", stdin), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read = ct.read_predictions("-", format=kind, **choices)
        except FileNotFoundError:
            assert "label" in choices  # a file of labels, for numbers without names
            return
        except ct.InvalidPredictionsError as error:
            sentence = str(error)
        else:
            sentence = ""
    if sentence:
        assert "\n" not in sentence
        assert len(sentence) > 20
        return
    assert read.n > 0
    assert np.isfinite(read.probs).all()
    np.testing.assert_allclose(read.probs.sum(axis=1), 1.0, atol=1e-9)
    assert 0 <= read.labels.min() <= read.labels.max() < read.n_classes


CHOICES = st.sampled_from(
    [{}, {"drop_missing": True}, {"probs": "p*"}, {"label": "label = 1"}, {"ids": "id"}]
)
COMPACT = [kind for kind in VALID if kind not in ("excel", "parquet")]


@settings(max_examples=150, deadline=20000, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([None, *FORMATS]), st.binary(max_size=300), CHOICES)
def test_random_bytes(kind, data, choices):
    survive(kind, data, **choices)


@pytest.mark.slow
@settings(max_examples=150, deadline=20000, suppress_health_check=list(HealthCheck))
@given(damaged(COMPACT), CHOICES)
def test_damaged_files(file, choices):
    survive(*file, **choices)


@settings(max_examples=100, deadline=20000, suppress_health_check=list(HealthCheck))
@given(st.text(alphabet='0123456789.,;"\n\t plabey_-einf\x00é', max_size=200), CHOICES)
def test_random_text(text, choices):
    survive("csv", ("p,label\n" + text).encode(), **choices)


@pytest.mark.slow
@settings(max_examples=10000, deadline=None, suppress_health_check=list(HealthCheck))
@given(damaged(list(VALID)), CHOICES)
def test_many_damaged_files(file, choices):
    survive(*file, **choices)


def test_names_with_line_feeds_make_no_second_line(tmp_path):
    np.savez(tmp_path / "a.npz", **{"probs": PROBS, "\nabel": LABELS})
    with pytest.raises(ct.InvalidPredictionsError, match="the label; the columns are p0"):
        ct.read_predictions(tmp_path / "a.npz")
