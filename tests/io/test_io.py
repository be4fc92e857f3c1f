"""Files that are read, and files that are refused."""

import pickle
import sys

import numpy as np
import pytest
from test_files import LABELS, PROBS, check, refused

import caltest as ct
from caltest import InvalidPredictionsError, read_predictions
from caltest.io import text


def write_csv(path, header, rows, delimiter=","):
    lines = [delimiter.join(header), *(delimiter.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def table(labels=LABELS):
    return [[*p, y] for p, y in zip(PROBS, labels, strict=True)]


@pytest.mark.parametrize(
    "header",
    [
        ["p_0", "p_1", "p_2", "label"],
        ["prob_0", "prob_1", "prob_2", "y"],
        ["proba_a", "proba_b", "proba_c", "target"],
        ["P_0", "P_1", "P_2", "Outcome"],
    ],
)
def test_csv_columns_are_found_by_name(tmp_path, header):
    check(read_predictions(write_csv(tmp_path / "f.csv", header, table())))


def test_csv_says_what_was_understood(tmp_path):
    data = read_predictions(write_csv(tmp_path / "f.csv", ["p_0", "p_1", "p_2", "y"], table()))
    assert data.notes == ("read 4 rows, 3 classes from columns p_0, p_1, p_2, labels from y",)


def test_columns_are_ordered_by_number_and_labels_follow(tmp_path):
    rows = [[p[2], p[0], p[1], y + 1] for p, y in zip(PROBS, LABELS, strict=True)]
    data = read_predictions(write_csv(tmp_path / "f.csv", ["p_3", "p_1", "p_2", "y"], rows))
    check(data)
    assert data.classes == ("1", "2", "3")


def test_ten_columns_are_ordered_as_numbers(tmp_path):
    header = [f"p_{k}" for k in (10, 2, 1, 0, 3, 4, 5, 6, 7, 8, 9)]
    row = [0.5, 0.25, 0.25, *[0.0] * 8]
    data = read_predictions(write_csv(tmp_path / "f.csv", [*header, "label"], [[*row, 10]] * 2))
    assert data.probs[0, 10] == 0.5
    assert data.labels[0] == 10


def test_class_names_as_columns(tmp_path):
    names = ["cat", "dog", "owl"]
    rows = [["x1", *p, names[y]] for p, y in zip(PROBS, LABELS, strict=True)]
    data = read_predictions(write_csv(tmp_path / "f.csv", ["id", *names, "label"], rows))
    check(data)
    assert data.classes == ("cat", "dog", "owl")


@pytest.mark.parametrize("name", ["p", "prob", "p_1"])
def test_one_column_is_binary(tmp_path, name):
    rows = [[0.25, 0], [0.5, 1], ["1e-3", 1]]
    data = read_predictions(write_csv(tmp_path / "f.csv", [name, "y"], rows))
    np.testing.assert_array_equal(data.probs[:, 1], [0.25, 0.5, 0.001])


@pytest.mark.parametrize("cells", [["True", "False", "true"], ["1.0", "0.0", "1.0"]])
def test_binary_labels_in_words_or_decimals(tmp_path, cells):
    rows = [[0.25, c] for c in cells]
    data = read_predictions(write_csv(tmp_path / "f.csv", ["p", "y"], rows))
    np.testing.assert_array_equal(data.labels, [1, 0, 1])


def test_columns_by_hand(tmp_path):
    path = write_csv(tmp_path / "f.csv", ["A", "B", "C", "seen"], table())
    check(read_predictions(path, "A,B,C", "seen"))
    check(read_predictions(path, ["A", "B", "C"], "seen"))
    check(read_predictions(path, "[ABC]", "seen"))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", [str, "class {}".format])
def test_one_pass_however_many_columns(tmp_path, monkeypatch, name, fast):
    passes = []
    original = text._rows
    monkeypatch.setattr(text, "_rows", lambda *given: passes.append(given) or original(*given))
    if not fast:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
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


def test_a_column_of_numbers_and_text_is_text(tmp_path):
    rows = [[0.5, 0.5, "1"], [0.25, 0.75, "1b"]]
    path = write_csv(tmp_path / "f.csv", ["p_1", "p_1b", "y"], rows)
    np.testing.assert_array_equal(read_predictions(path).labels, [0, 1])


def test_blank_lines_and_long_texts_are_no_matter(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("\n\np,y,remark\n0.5,1,\n\n  \n0.25,0," + "x" * 200_000 + "\n")
    np.testing.assert_array_equal(read_predictions(path).labels, [1, 0])


def test_facts_of_the_rows(tmp_path):
    header = ["p", "y", "p_site", "n", "region", "id"]
    rows = [[0.5, 1, "a", 1, "x", 7], [0.25, 0, "b", 2, "x", 8], [0.75, 1, "a", 0.5, "z", 9]]
    path = write_csv(tmp_path / "f.csv", header, rows)
    data = read_predictions(path, weights="n", clusters="p_site", by="region", ids="id")
    np.testing.assert_array_equal(data.weights, [1.0, 2.0, 0.5])
    np.testing.assert_array_equal(data.clusters, [0, 1, 0])
    assert data.by.tolist() == ["x", "x", "z"]
    assert data.ids.tolist() == [7, 8, 9]
    assert data.notes[0].endswith(
        "labels from y, weights from n, clusters from p_site, by from region, ids from id"
    )
    refused(path, "no column 'patient' among p, y", clusters="patient")
    rows[1][2] = ""
    write_csv(path, header, rows)
    refused(path, "column p_site has 1 missing cell, in row 2 ", clusters="p_site")


def test_npz(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, probs=PROBS.astype(np.float32), labels=LABELS, fold=LABELS)
    data = read_predictions(path)
    np.testing.assert_allclose(data.probs, PROBS, atol=1e-7)
    assert (
        data.notes[0]
        == "read 4 rows, 3 classes from column probs, labels from labels, not used: fold"
    )


def test_npz_of_logits(tmp_path):
    path = tmp_path / "f.npz"
    np.savez(path, logits=np.log(PROBS) + 3.0, labels=LABELS)
    check(read_predictions(path, from_logits=True))
    with pytest.raises(InvalidPredictionsError, match="from_logits=True"):
        read_predictions(path)


def test_npy_pair(tmp_path):
    np.save(tmp_path / "p.npy", PROBS)
    np.save(tmp_path / "y.npy", LABELS)
    check(read_predictions(tmp_path / "p.npy", label=tmp_path / "y.npy"))
    refused(tmp_path / "p.npy", "name the file of the labels")
    np.savez(tmp_path / "y.npz", LABELS)
    check(read_predictions(tmp_path / "p.npy", label=tmp_path / "y.npz"))
    (tmp_path / "q.npy").write_bytes((tmp_path / "y.npz").read_bytes())
    refused(tmp_path / "q.npy", "does not hold one array", label=tmp_path / "y.npz")


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "f.parquet"
    columns = {f"p_{k}": PROBS[:, k] for k in range(3)}
    pyarrow.parquet.write_table(pyarrow.table({**columns, "label": LABELS}), path)
    check(read_predictions(path))
    objects = [{"a": 1}] * 4
    content = {"probs": list(PROBS), "label": LABELS, "p.0": LABELS, "seen": objects}
    pyarrow.parquet.write_table(pyarrow.table(content), path)
    check(read_predictions(path))
    refused(path, "column seen holds objects", probs="seen")
    np.testing.assert_array_equal(read_predictions(path, ids="p.0").ids, LABELS)


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (["p_0", "p_1", "y", "label"], [[0.5, 0.5, 1, 1]], r"labels could be y or label"),
        (
            ["p_0", "p_1", "prob", "y"],
            [[0.5, 0.5, 0.5, 1]],
            r"could be p_0, p_1 or prob; .*--probs",
        ),
        (["a", "b", "y"], [[0.5, 0.5, 1]], r"no probabilities found among a, b"),
        (["p_0", "p_1", "z"], [[0.5, 0.5, 1]], r"no labels found"),
        (["p", "y"], [[0.5, 1], ["", 0], [0.5, 1], ["NA", 1]], r"2 missing cells, in rows 2, 4"),
        (["p", "y"], [[0.5, 1], [0.5, ""]], r"column y has 1 missing cell, in row 2 "),
        (["p", "y"], [[0.5, 1], ["high", 0]], r"column p, row 2: 'high' is not a number"),
        (["p", "y"], [[0.5, 1], [0.5]], r"f.csv: line 3 has 1 cell,"),
        (["p", "y"], [[0.5, 1], [0.5, 1, 7]], r"f.csv: line 3 has 3 cells"),
        (["p", "y"], [["0,5", 1]], r"line 2 has 3 cells"),
        (["p_0", "y"], [[0.5, 1]], r"p_0 is the probability of class 0"),
        (["p", "y"], [["63%", 1]], r"'63%' is not a number.*--percent"),
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


def test_refuses_unknown_columns(tmp_path):
    path = write_csv(tmp_path / "f.csv", ["p", "y"], [[0.5, 1]])
    refused(path, "no column 'q' among p", probs="q,r")
    refused(path, "no column matches 'q_.'", probs="q_*")
    refused(path, "no column 'z' among p, y", label="z")


def test_refuses_files_that_are_not_what_they_seem(tmp_path):
    for suffix in (".csv", ".npz", ".npy", ".parquet", ".jsonl"):
        empty = tmp_path / f"empty{suffix}"
        empty.touch()
        refused(empty, "is empty")
    noise = bytes(range(256)) * 4
    for suffix, message in [
        (".npz", "not a readable NumPy file"),
        (".parquet", "not a readable Parquet file"),
        (".csv", "not a text file in UTF-8"),
        (".xls", "cannot be read; known are .csv"),
    ]:
        path = tmp_path / f"noise{suffix}"
        path.write_bytes(noise)
        refused(path, message)
    broken = tmp_path / "f.jsonl"
    broken.write_text('{"p": 0.5, "y": 1}\n{"p": 0.5,')
    refused(broken, "line 2 is not JSON")
    broken.write_text("[0.5, 1]\n")
    refused(broken, "entry 1 is not an object")
    broken.write_text('{"p": 0.5, "y": 1}\n{"y": 1}\n')
    refused(broken, "column p has 1 missing cell, in row 2")
    broken.write_text('{"probs": [0.5, 0.5], "y": 1}\n{"probs": [1.0], "y": 0}\n')
    refused(broken, "row 2 does not hold 2 numbers")
    with pytest.raises(InvalidPredictionsError, match="is a folder"):
        read_predictions(tmp_path)
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


def test_real_files(data_dir):
    known = {
        "multiclass/cifar10_densenet121.npz": (10_000, 10, 0.0410),
        "multiclass/hpc_cv.npz": (3467, 4, 0.0712),
        "multiclass/fmi_rain_24h.npz": (346, 3, 0.0373),
        "multiclass/cifar100_lenet5.npz": (10_000, 100, 0.0149),
    }
    for name, (n, n_classes, error) in known.items():
        data = read_predictions(data_dir / name)
        assert (data.n, data.n_classes) == (n, n_classes)
        assert round(ct.calibration_test(data).estimate, 4) == error
    flares = data_dir / "binary" / "solar_flares_c1.csv"
    refused(flares, "no probabilities found")
    refused(flares, "column AMOS has 71 missing cells", probs="AMOS")
    assert read_predictions(flares, "NOAA").n == 731
