"""Files that are read, and files that are refused."""

import pickle
import sys

import numpy as np
import pytest
from test_files import LABELS, PROBS, check, refused

from caltest.read import formats as text
from caltest.read.files import read_predictions


def write_csv(path, header, rows, delimiter=","):
    lines = [delimiter.join(header), *(delimiter.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(labels=LABELS):
    return [[*p, y] for p, y in zip(PROBS, labels, strict=True)]


HEADERS = ["p_0,p_1,p_2,label", "prob_0,prob_1,prob_2,y", "proba_a,proba_b,proba_c,target"]
HEADERS += ["P_0,P_1,P_2,Outcome", "0,1,2,ground_truth", "prob0,prob1,prob2,gold"]
HEADERS += [f"p_0,p_1,p_2,{truth}" for truth in ("Y_TRUE", "correct_answer", "actual")]


@pytest.mark.parametrize("header", HEADERS)
def test_columns_are_found_by_name(tmp_path, header):
    check(read_predictions(write_csv(tmp_path / "f.csv", header.split(","), table())))


ELEVEN = ",".join(f"p_{k}" for k in (10, *range(10)))
PREDICTED = "y_true,y_pred,score\n1,1,0.9\n0,1,0.6\n0,0,"
#: Text, what is said of it, the probability of the last class that is read, and the labels.
READ = [
    ("p_3,p_1,p_2,y\n0.5,0.2,0.3,1\n0.1,0.6,0.3,2\n", {}, [0.5, 0.1], [0, 1]),
    (f"{ELEVEN},y\n0.5,0.5{9 * ',0'},10\n", {}, [0.5], [10]),
    ("p,y\n0.25,True\n1e-3,false\n", {}, [0.25, 0.001], [1, 0]),
    ("p,y\n0.25,1.0\n0.5,0.0\n", {}, [0.25, 0.5], [1, 0]),
    ("A,B,C,seen\n0.2,0.3,0.5,2\n", {"probs": "[ABC]", "label": "seen"}, [0.5], [2]),
    ("A,B,C,seen\n0.2,0.3,0.5,2\n", {"probs": "A,B,C", "label": "seen"}, [0.5], [2]),
    ("p_1,p_1b,y\n0.5,0.5,1\n0.25,0.75,1b\n", {}, [0.5, 0.75], [0, 1]),
    *((f"{name},correct\n0.25,0\n0.75,1\n", {}, [0.25, 0.75], [0, 1])
      for name in ("predictions", "scores", "confidence", "y_pred_proba", "y_prob")),
    (PREDICTED + "0.2\n", {}, [0.9, 0.6, 0.2], [1, 0, 0]),  # the probability of label 1
    (PREDICTED + "0.8\n", {}, [0.9, 0.6, 0.8], [1, 0, 1]),  # never below ½: the chance to be right
    ("p_a,p_b,is_b,is_a\n0.5,0.5,1,0\n0.25,0.75,0,1\n", {"label": "is_*"}, [0.5, 0.75], [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "choices", "last", "labels"), READ)
def test_what_is_read(tmp_path, content, choices, last, labels):
    path = tmp_path / "f.csv"
    path.write_text(content)
    data = read_predictions(path, **choices)
    np.testing.assert_allclose(data.probs[:, -1], last, rtol=1e-12)
    np.testing.assert_array_equal(data.labels, labels)


@pytest.mark.parametrize("name", [str, "class {}".format])
def test_one_pass_however_many_columns(tmp_path, monkeypatch, name, fast):
    passes = []
    original = text._rows
    monkeypatch.setattr(text, "_rows", lambda *given: passes.append(given) or original(*given))
    for n_classes in (3, 200):
        probs = np.random.default_rng(0).dirichlet(np.ones(n_classes), 50)
        labels = np.arange(50) % n_classes
        names = [name(k) for k in range(n_classes)]
        rows = [[*p, names[y]] for p, y in zip(probs.tolist(), labels, strict=True)]
        header = [*(f"p_{k}" for k in names), "label"]
        data = read_predictions(write_csv(tmp_path / "f.csv", header, rows))
        np.testing.assert_array_equal(data.probs, probs)
        np.testing.assert_array_equal(data.labels, labels)
    # the header and the first row; all rows, unless compiled code reads them
    assert len(passes) == (2 if fast or name is str else 4)


def test_facts_of_the_rows(tmp_path):
    header = ["p", "y", "p_site", "n", "region", "id"]
    rows = [[0.5, 1, "a", 1, "x", 7], [0.25, 0, "b", 2, "x", 8], [0.75, 1, "a", 0.5, "z", 9]]
    path = write_csv(tmp_path / "f.csv", header, rows)
    data = read_predictions(path, weights="n", clusters="p_site", by="region", ids="id")
    np.testing.assert_array_equal(data.weights, [1.0, 2.0, 0.5])
    np.testing.assert_array_equal(data.clusters, [0, 1, 0])
    assert (data.by.tolist(), data.ids.tolist()) == (["x", "x", "z"], [7, 8, 9])
    assert data.notes[0].endswith(
        "labels from y, weights from n, clusters from p_site, by from region, ids from id"
    )
    refused(path, "no column 'patient' among p, y", clusters="patient")
    rows[1][2] = ""
    write_csv(path, header, rows)
    refused(path, "column p_site has 1 missing cell, in row 2 ", clusters="p_site")


def test_npz_of_logits(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, logits=np.log(PROBS) + 3.0, labels=LABELS)
    check(read_predictions(path, from_logits=True))
    check(data := read_predictions(path))
    assert "from column logits (logits, by their names), labels" in data.notes[0]
    np.savez(path, outputs=np.log(PROBS) + 3.0, labels=LABELS)
    refused(path, "from_logits=True")
    beside = {"files": np.array(["a.png", "b.png", "c.png"]), "confidence": PROBS.max(axis=1)}
    for probs, label in [("softmax", "targets"), ("outputs", "gt"), ("y_pred", "y_true")]:
        np.savez(path, **{probs: PROBS.astype("f4"), label: np.eye(3)[LABELS]}, **beside)
        np.testing.assert_array_equal(read_predictions(path).labels, LABELS)
    np.savez(path, arr_0=PROBS, arr_1=LABELS)
    refused(path, r"f.npz: .* among arr_0 \(4, 3\), arr_1 \(4,\); .*\(--label\), such as arr_1")


def test_npy_pair(tmp_path):
    np.savez(tmp_path / "f.npz", probs=np.full((2, 3, 3), 0.5), masks=np.zeros((2, 3, 3), int))
    refused(tmp_path / "f.npz", r"probs has the shape \(2, 3, 3\): of pixels .*ravel")
    np.save(tmp_path / "p.npy", PROBS)
    np.save(tmp_path / "y.npy", LABELS)
    check(read_predictions(tmp_path / "p.npy", label=tmp_path / "y.npy"))
    refused(tmp_path / "p.npy", "name the file of the labels")
    np.savez(tmp_path / "y.npz", LABELS)
    check(read_predictions(tmp_path / "p.npy", label=tmp_path / "y.npz"))
    (tmp_path / "q.npy").write_bytes((tmp_path / "y.npz").read_bytes())
    refused(tmp_path / "q.npy", "does not hold one array", label=tmp_path / "y.npz")


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (["p_0", "p_1", "y", "label"], [[0.5, 0.5, 1, 1]], r"labels could be y or label"),
        (["p_0", "p_1", "prob", "y"], [[0.5, 0.5, 0.5, 1]], r"p_0, p_1 or prob; .*--probs"),
        (["a", "b", "y"], [[0.5, 0.3, 1]], r"no probabilities found among a, b"),
        (["p_0", "p_1", "z"], [[0.5, 0.5, 1]], r"no labels found"),
        (["p", "y"], [[0.5, 1], ["", 0], [0.5, 1], ["NA", 1]], r"2 missing cells, in rows 2, 4"),
        (["p", "y"], [[0.5, 1], [0.5, ""]], r"column y has 1 missing cell, in row 2 "),
        (["p", "y"], [[0.5, 1], ["high", 0]], r"column p, row 2: 'high' is not a number"),
        (["p", "y"], [[0.5, 1], [0.5]], r"f.csv: line 3 has 1 cell,"),
        (["p", "y"], [[0.5, 1], [0.5, 1, 7]], r"f.csv: line 3 has 3 cells"),
        (["p", "y"], [["0,5", 1]], r"line 2 has 3 cells"),
        (["p_0", "y"], [[0.5, 1]], r"p_0 is the probability of class 0"),
        (["p", "y"], [["63%", 1], ["0.2", 0]], r"'63%' is not .* other cells have no percent"),
        (["0.5", "1"], [[0.25, 0]], r"begins with numbers: .*header"),
        (["p", "p", "y"], [[0.5, 0.5, 0]], r"names the column 'p' twice"),
        (["p", "y", "z"], [[0.5, 1, '"a, b"'], [0.5, '"1"']], r"line 3 has 2 cells, the header 3"),
        (["p", "y"], [[0.5, 1]] * 3000 + [["\\N", 1]], r"column p, row 3001: '\\\\N' is not a n"),
        (["p", "y"], [], r"no rows"),
        (["p", "y"], [[1.5, 1]], r"f.csv: probs: row 1 is 1.5"),
    ],
)
def test_refuses_csv(tmp_path, header, rows, message):
    refused(write_csv(tmp_path / "f.csv", header, rows), message)


def test_refuses_files_that_are_not_what_they_seem(tmp_path):
    for suffix in (".csv", ".npz", ".npy", ".parquet", ".jsonl"):
        (tmp_path / f"empty{suffix}").touch()
        refused(tmp_path / f"empty{suffix}", "is empty")
    noise = bytes(range(256)) * 4
    for suffix, message in [
        (".npz", "not a readable NumPy file"),
        (".parquet", "not a readable Parquet file"),
        (".csv", "not a text file in UTF-8"),
        (".xls", "cannot be read; known are .csv"),
    ]:
        (tmp_path / f"noise{suffix}").write_bytes(noise)
        refused(tmp_path / f"noise{suffix}", message)
    broken = tmp_path / "f.jsonl"
    broken.write_text('{"p": 0.5, "y": 1}\n{"p": 0.5,')
    refused(broken, "line 2 is not JSON")
    broken.write_text('{"probs": [0.5, 0.5], "y": 1}\n{"probs": [1.0], "y": 0}\n')
    refused(broken, "row 2 does not hold 2 numbers")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_predictions(tmp_path / "nowhere.csv")


def test_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    np.savez(tmp_path / "f.npz", probs=np.array([Bomb()], dtype=object), labels=[0])
    refused(tmp_path / "f.npz", "holds Python objects")
    (tmp_path / "g.npy").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "y.npy").write_bytes(pickle.dumps(Bomb()))
    refused(tmp_path / "g.npy", "holds Python objects", label=tmp_path / "y.npy")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "f.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r"caltest\[parquet\]"):
        read_predictions(tmp_path / "f.parquet")
