"""Files as people have them: every kind is read rightly, or refused with what to do."""

import gzip
import io
import json
import shlex
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError
from caltest.read.files import read_forecasters, read_predictions
from caltest.read.formats import of_arrow

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
    return said


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- packed, piped, and in other formats ---------------------------------------------------------


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


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("f.csv.gz", gzip.compress),
        ("f.csv.zst", zst),
        ("f.zip", lambda data: zipped({"inside.csv": data, "__MACOSX/._inside.csv": b"x"})),
        ("f.GZ", gzip.compress),
    ],
)
def test_compressed(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(CSV.encode()))
    check(read_predictions(path))
    path.write_bytes(pack(CSV.encode())[:-15])
    refused(path, "not a readable .* file")


@pytest.mark.parametrize(
    "pack", [str.encode, lambda t: gzip.compress(t.encode()), lambda t: zipped({"f.csv": t})]
)
def test_standard_input(run, monkeypatch, pack, done):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(CSV))))
    assert "read 4 rows, 3 classes" in done("test", "-")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert "standard input is empty" in run("test", "-")[2]


def test_standard_input_knows_formats_by_their_beginning(monkeypatch, tmp_path):
    def piped(data, **choices):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        return read_predictions("-", **choices)

    records = [dict(zip(["p_0", "p_1", "p_2", "y"], row, strict=True)) for row in ROWS]
    check(piped(json.dumps(records).encode()))
    np.savez(tmp_path / "f.npz", probs=PROBS, labels=LABELS)
    check(piped((tmp_path / "f.npz").read_bytes(), format="npz"))
    np.save(tmp_path / "p.npy", PROBS)
    np.save(tmp_path / "y.npy", LABELS)
    check(piped((tmp_path / "p.npy").read_bytes(), label=tmp_path / "y.npy"))


@pytest.mark.parametrize("name", ["f.arrow", "f.feather", "f.stream.arrow", "f.parquet"])
def test_arrow(tmp_path, name):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc, parquet

    table = pyarrow.table({"probs": PROBS.tolist(), "label": LABELS, "odd": [{"a": 1}] * 4})
    path = tmp_path / name
    if name == "f.feather":
        feather.write_feather(table, path)
    elif name == "f.parquet":
        parquet.write_table(table, path)
    else:
        new = ipc.new_file if name == "f.arrow" else ipc.new_stream
        with path.open("wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table)
    data = read_predictions(path)
    check(data)
    assert data.notes[0].endswith("labels from label, not used: odd")
    refused(path, "column odd holds objects", probs="odd")
    rows = of_arrow("p", pyarrow.chunked_array([[[0.25, 0.75], None]]))
    np.testing.assert_array_equal(rows, [[0.25, 0.75], [np.nan, np.nan]])
    path.write_bytes(path.read_bytes()[:100])
    refused(path, "not a readable (Arrow|Parquet) file")


def test_damaged_offsets_of_arrow_do_not_end_the_process(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import ipc

    table = pyarrow.table({"probs": PROBS.tolist(), "label": LABELS})
    path = tmp_path / "f.arrow"
    with path.open("wb") as sink, ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    offsets = np.array([0, 3, 6, 9, 12], dtype=np.int32).tobytes()
    far = np.array([0, 3, 2**30, 9, 12], dtype=np.int32).tobytes()
    assert path.read_bytes().count(offsets) == 1
    path.write_bytes(path.read_bytes().replace(offsets, far))
    refused(path, "not a readable Arrow file")


def test_excel(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "f.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["p_0", "p_1", "p_2", "label", "remark"])
    for row in ROWS:
        book.active.append([*row, None])
    book.create_sheet("empty")
    book.save(path)
    check(read_predictions(path))
    book["empty"]["A1"] = "notes are no table, nor are titles"
    book["Sheet"].insert_rows(1, 2)
    book["Sheet"]["A1"] = "Results of today"
    book.save(path)
    data = read_predictions(path)
    check(data)
    assert data.notes[1:] == ("sheet Sheet of Sheet, empty", "1 line above the header left out")
    for row in (["Version", "of"], ["by", "us"], [2, "a cover"]):  # above it is no table, either
        book["empty"].append(row)
    book.save(path)
    check(read_predictions(path))
    book.copy_worksheet(book["Sheet"])
    book.save(path)
    refused(path, r"2 sheets with tables \(Sheet, Sheet Copy\): say which holds the rows")
    check(read_predictions(path, sheet="Sheet"))
    refused(path, "3 sheets with tables", sheet="sheet")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"caltest\[excel\]"):
        read_predictions(path)


def test_json_arrays(tmp_path):
    records = [dict(zip(["p_0", "p_1", "p_2", "y"], row, strict=True)) for row in ROWS]
    check(read_predictions(written(tmp_path / "f.json", json.dumps(records, indent=1))))
    columns = {"probs": PROBS.tolist(), "labels": LABELS.tolist(), "model": "m"}
    check(read_predictions(written(tmp_path / "g.json", json.dumps(columns))))
    check(read_predictions(written(tmp_path / "h.json", "\n".join(map(json.dumps, records)))))
    check(read_predictions(written(tmp_path / "f.jsonl", json.dumps(records))))
    columns["labels"].pop()
    path = written(tmp_path / "g.json", json.dumps(columns))
    refused(path, "different numbers of rows: labels 3, probs 4")
    refused(written(path, json.dumps(records, indent=1)[:-9]), "line 2[0-9] is not JSON")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"p": 0.5, "y": 1}\n{"p": ' + "[" * 100_000, "line 2: its brackets are nested too"),
        ('{"p": 0.5, "p": 0.6, "y": 1}', "holds the key 'p' twice"),
        ('{"p": 0.5, "y": 1}\n{"p": 0.5, "p": 0.6, "y": 1}', "line 2: .* the key 'p' twice"),
        ('{"p": 0.5, "y": ' + "1" * 5000 + "}", "limit .* digits"),
        ('[{"p": true, "y": 1}, {"p": false, "y": 0}]', "column p, row 1: 'True' .* but a class"),
        ('[{"p": 0.5, "y": 1}, 7]', "entry 2 is not an object"),
        ('[{"p": [[1], 2], "y": 1}]', "not a list of numbers"),
        ('[{"p": {"A": 1}, "y": 1}, {"p": 7, "y": 1}]', "column p holds objects"),
        ("[]", "no labels found among no columns"),
    ],
)
def test_refused_json(tmp_path, text, message):
    refused(written(tmp_path / "f.json", text), message)


def test_format_for_files_with_other_names(tmp_path):
    path = written(tmp_path / "f.dat", CSV)
    refused(path, r"files of type .dat cannot be read; .* say which of them it is with format=")
    check(read_predictions(path, format="csv"))
    with pytest.raises(ct.StatisticError, match="format must be one of None, 'csv'"):
        read_predictions(path, format="cvs")
    with pytest.raises(TypeError, match=r"path is a list, .* Predictions.of\(probs, labels\)"):
        read_predictions([0.5])


def test_a_huge_npy_header_is_a_sentence(tmp_path):
    path = tmp_path / "f.npy"
    np.save(path, PROBS)
    small = b"'shape': (4, 3), }"
    huge = b"'shape': (1000000000000,), }"
    data = path.read_bytes()
    assert small in data
    path.write_bytes(data.replace(small + b" " * (len(huge) - len(small)), huge))
    refused(path, "not a readable NumPy file", label="y.npy")


# --- what labels mean ----------------------------------------------------------------------------

TOP = "true_label,pred_label,confidence\ncat,cat,0.9\ndog,cat,0.6\nowl,owl,0.4\nowl,dog,0.5\n"


def test_top_label_files(tmp_path):
    data = read_predictions(written(tmp_path / "f.csv", TOP))
    check(data, [[0.1, 0.9], [0.4, 0.6], [0.6, 0.4], [0.5, 0.5]], [1, 0, 1, 0])
    assert data.classes == ("wrong", "right")
    assert data.notes[0] == (
        "read 4 rows, 2 classes from column confidence, as the probability that pred_label equals "
        "true_label"
    )
    result = ct.calibration_test(data)
    assert result.lens == "OneVsRest(1)"
    assert result.estimate == pytest.approx((0.1 + 0.6 + 0.6 + 0.5) / 4)
    numbers = TOP.replace("cat", "0").replace("dog", "1").replace("owl", "2")
    check(read_predictions(written(tmp_path / "g.csv", numbers)), data.probs, data.labels)


OUTCOMES = (
    "team1,team2,prob1,prob1_outcome,prob2,prob2_outcome,probtie,probtie_outcome\n"
    "A,B,0.5,1,0.25,0,0.25,0\nC,D,0.25,0,0.25,0,0.5,1\nE,F,0.5,0,0.25,1,0.25,0\n"
)


@pytest.mark.parametrize(
    "choices", [{}, {"probs": "prob1,prob2,probtie"}, {"probs": ["prob1", "prob2", "probtie"]}]
)
def test_outcome_columns_by_pattern(tmp_path, choices):
    path = written(tmp_path / "f.csv", OUTCOMES)
    data = read_predictions(path, label="prob*_outcome", **choices)
    check(data, [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.5, 0.25, 0.25]], [0, 2, 1])
    back = read_predictions(path, "probtie,prob2,prob1", "prob*_outcome")
    np.testing.assert_array_equal(back.labels, [2, 0, 1])
    with pytest.raises(InvalidPredictionsError, match="do not belong to the probabilities"):
        read_predictions(path, "prob1,prob2", "prob*_outcome")


# --- a file of labels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels", ["0\n1\n2\n0\n", "label\n0\n1\n2\n0\n", "i,y\n0,0\n1,1\n2,2\n3,0\n"]
)
@pytest.mark.parametrize("header", ["", "0,1,2\n", "p_0,p_1,p_2\n"])
def test_numbers_without_a_header_and_labels_of_their_own(tmp_path, header, labels):
    bare = "".join(",".join(map(str, row)) + "\n" for row in PROBS.tolist())
    path = written(tmp_path / "p.csv", header + bare)
    truth = written(tmp_path / "y.csv", labels)
    check(read_predictions(path, label=truth))
    check(read_predictions(path, label=str(truth)))
    if not header:
        refused(path, "begins with numbers: add a header .* or name the file of the labels")
        np.save(tmp_path / "y.npy", LABELS)
        check(read_predictions(path, label=tmp_path / "y.npy"))
        with pytest.raises(FileNotFoundError, match=r"there is no file z.csv"):
            read_predictions(path, label="z.csv")


# --- rounding and what is missing ----------------------------------------------------------------


MISSING = "id,A,B,y\n1,0.25,NA,0\n2,,0.5,1\n3,0.75,0.25,1\n4,0.5,0.5,\n5,0.25,0.75,0\n"


@pytest.mark.usefixtures("fast")
def test_missing_cells(tmp_path):
    path = written(tmp_path / "f.csv", MISSING)
    refused(path, r"column y has 1 missing cell, in row 4 .*drop_missing=True", probs="A")
    data = read_predictions(path, "A", drop_missing=True, ids="id")
    check(data, [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25]], [0, 1, 0])
    assert data.ids.tolist() == [1, 3, 5]
    assert data.notes[1] == "dropped 2 of 5 rows with missing cells (y 1, A 1)"
    bad = written(tmp_path / "f.csv", MISSING.replace("5,0.25", "5,1.25"))
    refused(bad, "row 5 is 1.25", probs="A", drop_missing=True)
    refused(written(tmp_path / "f.csv", "p,y\n,1\n0.5,\n"), "no row is complete", drop_missing=True)


def test_many_forecasters_of_one_file(run, tmp_path, done, refused):
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = rng.random(300) < p
    rows = [
        f"{p[i] if i % 10 else ''},{p[i] ** 3},{p[i] ** 0.9 if i % 7 else 'NA'},{int(y[i])}\n"
        for i in range(300)
    ]
    path = written(tmp_path / "f.csv", "AMOS,NOAA,ENS,outcome\n" + "".join(rows))
    asked = ("compare", path, "--probs", "AMOS,NOAA,ENS", "--n-resamples", 19)
    code, _, err = run(*asked)
    assert code == 2
    assert all(words in err for words in ("column AMOS has 30 missing cells", "--drop-missing"))
    table = ct.ComparisonTable.from_json(done(*asked, "--drop-missing", "--json"))
    gate = ("gate", path, "--margin", "0.1", "--drop-missing")
    assert "\n  NOAA − ENS " in run(*gate, "--probs", "NOAA,ENS")[1]
    table_of_two = "score_main,score_new,y\n" + "0.5,0.25,1\n0.1,0.2,0\n" * 50
    two = ("gate", written(tmp_path / "g.csv", table_of_two), "--margin", "0.1")
    for names in ("score_main,score_new", "score_new,score_main"):
        refused(f"run: {shlex.join(map(str, ('caltest', *two)))} --probs {names}\n", *two)
    written(two[1], "p_0,p_1,y\n0.5,0.5,1\n0.1,0.9,0\n")
    refused("--margin is to another model", *two, "--probs", "p_0,p_1")
    written(path, "a_0,a_1,b_0,b_1,y\n0.5,0.5,0.25,0.75,1\n0.1,0.9,0.2,0.8,0\n")
    assert [*read_forecasters(path, "a_*,b_*")] == ["a_*", "b_*"]
    both = [i for i in range(300) if i % 10 and i % 7]
    assert table.n == len(both)
    models = {"AMOS": p[both], "NOAA": p[both] ** 3, "ENS": p[both] ** 0.9}
    expected = ct.compare_models(models, y[both].astype(int), n_resamples=19, rng=0)
    assert table.names == expected.names
    assert [r.pvalue for r in table.pairs] == pytest.approx([r.pvalue for r in expected.pairs])


# --- text that is not what it seems --------------------------------------------------------------


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p,y\n0.5,1\n0.2\0,0\n", "line 3 holds a NUL byte"),
        ('p,y,z\n0.5,1,a\n0.2,0,"b\n0.1,1,c\n', "line 4: unexpected end of data"),
        ('p,y,z\n0.5,1,"a\n,b"\n0.2,0\n', "line 4 has 2 cells, the header 3"),
        ("p,y\n0.5,1\n0.5,1,2\n", "line 3 has 3 cells, the header 2"),
        ("p,y\n", "no rows"),
        ("\n\n", "no rows"),
    ],
)
def test_refused_text(tmp_path, text, message):
    refused(written(tmp_path / "f.csv", text), message)


@pytest.mark.usefixtures("fast")
def test_quotes_blanks_and_line_ends(tmp_path):
    text = '\ufeff\r\n"label" ;p_a; p_b;"note, or\nremark"\r\n'
    text += ' a ; 0.25;0.75;"x;\ny"\r\n\r\nb;0.5;0.5;\r\n'
    path = tmp_path / "f.csv"
    path.write_bytes(text.encode())
    data = read_predictions(path)
    check(data, [[0.25, 0.75], [0.5, 0.5]], [0, 1])
    assert data.classes == ("a", "b")


# --- logs of evaluations -------------------------------------------------------------------------


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


SAMPLES = [lm_eval([-1.0, -2.0], 0, 0), lm_eval([-3.0, -1.5, -2.5], 2, 1)]
SAMPLES += [lm_eval([-0.5, -9.0], "no", 2)]
TASK = "samples_my_task_2025-01-31T12-00-00.123456.jsonl"


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def test_lm_eval(tmp_path):
    path = written(tmp_path / TASK, "\n".join(map(json.dumps, SAMPLES)))
    for found in (read_predictions(path), read_predictions(path, format="lm-eval", by="task")):
        np.testing.assert_allclose(found.probs[0], [*softmax(np.array([-1.0, -2.0])), 0.0])
        np.testing.assert_allclose(found.probs[1], softmax(np.array([-3.0, -1.5, -2.5])))
        np.testing.assert_array_equal(found.labels, [0, 2, 1])
        assert found.ids.tolist() == [f"{i:064x}" for i in range(3)]
        assert "softmax of the options' log-likelihoods, not length-normalised" in found.notes
        assert "2 rows have fewer options: absent ones have probability 0" in found.notes
    assert found.by.tolist() == ["my_task"] * 3
    scaled = read_predictions(path, per_character=True)
    np.testing.assert_allclose(scaled.probs[1], softmax(np.array([-3.0 / 3, -1.5 / 2, -2.5 / 7])))
    assert "each divided by the characters of its option" in scaled.notes[1]
    refused(path, "leave from_logits out", from_logits=True)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (lm_eval([-1.0, -2.0], 0, 3, acc=0.0), "row 4: the target 0 does not fit .* and acc 0.0"),
        (lm_eval([-1.0, -2.0], 7, 3), "row 4: the target 7 does not fit its 2 options"),
        (lm_eval([-1.0, -2.0], 0, 3, filtered_resps=["text"]), "row 4 does not hold log-like"),
        (lm_eval([-1.0, -2.0], 0, 3, filter="strict"), "samples of 2 filters"),
        (lm_eval([-1.0, -2.0], "maybe", 3), "not a readable lm-eval file"),
        (lm_eval([-1.0, -2.0], 0, 3, acc_mutual_info=1.0), "acc_mutual_info"),
        (lm_eval([-1.0, -2.0], 0, 2), "not told apart by doc_hash and doc_id"),
    ],
)
def test_refused_lm_eval(tmp_path, sample, message):
    refused(written(tmp_path / TASK, "\n".join(map(json.dumps, [*SAMPLES, sample]))), message)


def inspect_sample(i, confidence, value, epoch=1):
    """A sample of an Inspect log, schema version 2, scored as its evaluation of HLE does."""
    score = {"value": value, "answer": "x", "metadata": {"confidence": confidence}}
    said = {"input": "question", "target": "x", "messages": [], "output": {"model": "m"}}
    scores = {"judge": score, "other": {"value": 1}}
    return {"id": f"q{i}", "epoch": epoch, **said, "scores": scores, "metadata": {}}


INSPECTED = [inspect_sample(0, 90, "C"), inspect_sample(1, 35, "I"), inspect_sample(2, 100, "C")]


def inspect_log(samples):
    members = {"header.json": '{"version": 2, "status": "success"}', "summaries.json": "[]"}
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


@pytest.mark.parametrize("pack", [zipped, zst_members])
def test_inspect(tmp_path, pack):
    path = tmp_path / "log.eval"
    path.write_bytes(pack(inspect_log(INSPECTED)))
    data = read_predictions(path)
    check(data, [[0.1, 0.9], [0.65, 0.35], [0.0, 1.0]], [1, 0, 1])
    assert data.ids.tolist() == ["q0", "q1", "q2"]
    assert "confidence of the scorer judge, in percent" in data.notes[1]
    unscored = {**inspect_sample(3, 50, "C"), "scores": None}
    path.write_bytes(pack(inspect_log([*INSPECTED, unscored])))
    refused(path, "has 1 missing cell, in row 4 ")
    assert read_predictions(path, drop_missing=True).n == 3


def test_inspect_epochs_and_json(tmp_path):
    samples = [*INSPECTED, inspect_sample(0, 50, "I", epoch=2)]
    log = {"version": 2, "eval": {"task": "t"}, "samples": samples}
    path = written(tmp_path / "log.json", json.dumps(log))
    data = read_predictions(path, clusters="sample")
    assert (data.ids.tolist(), data.n_clusters) == (["q0 1", "q1 1", "q2 1", "q0 2"], 3)
    log["samples"] = [inspect_sample(0, 0.5, "P")]
    refused(written(path, json.dumps(log)), "the score 'P' is neither C or 1 nor I or 0")
    log["samples"] = [{**inspect_sample(0, 0.5, "C"), "scores": {"judge": {"value": "C"}}}]
    refused(written(path, json.dumps(log)), "0 scorers keep a confidence")
    refused(written(tmp_path / "f.eval", json.dumps({"a": 1})), "not a readable inspect file")


def helm_instance(i, max_prob, match, perturbation=None, logprob=-1.0):
    """An entry of per_instance_stats.json of HELM 0.5."""
    values = {"max_prob": max_prob, "exact_match": match, "logprob": logprob}
    stats = [
        {"name": {"name": name, "split": "test"}, "count": 1, "sum": value, "mean": value}
        for name, value in values.items()
    ]
    own = {"instance_id": f"id{i}", "train_trial_index": 0, "stats": stats}
    return own if perturbation is None else own | {"perturbation": {"name": perturbation}}


def test_helm(tmp_path):
    path = tmp_path / "per_instance_stats.json"
    entries = [helm_instance(0, 0.75, 1.0), helm_instance(1, 0.5, 0.0), helm_instance(2, 1.0, 0.5)]
    entries.append(helm_instance(0, 0.5, 0.0, "typos"))
    data = read_predictions(written(path, json.dumps(entries)))
    check(data, [[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]], [1, 0, 0])
    assert data.ids.tolist() == ["id0", "id1", "id2"]
    assert data.notes[1:] == (
        "max_prob as the probability of an exact match",
        "left out 1 rows with perturbed input",
    )
    silent = [helm_instance(i, 1.0, i % 2, logprob=0.0) for i in range(4)]
    refused(written(path, json.dumps(silent)), "all log-probabilities are 0: the model gave none")
    entries[0]["stats"].pop(0)
    refused(written(path, json.dumps(entries)), "not all instances have max_prob and exact_match")
    state = written(tmp_path / "scenario_state.json", json.dumps({"request_states": []}))
    refused(state, "read per_instance_stats.json")
    refused(path, "per_character is for samples of lm-eval", per_character=True)
