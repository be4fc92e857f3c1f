"""One table in every form that people save it in; damaged files are refused in one sentence."""

import gzip
import io
import json
import re
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from files_of_tests import CSV, LABELS, PROBS, check, refused, written, zipped, zst

import caltest as ct
from caltest.errors import DoubtfulInputError, InvalidPredictionsError
from caltest.read.files import read_predictions
from caltest.read.formats import FILE_FORMATS, FORMATS, PACKED

P, Y = [0.25, 0.75, 0.5], [0, 1, 1]
TEXT = "p,y,site\n0.25,0,a\n0.75,1,b\n0.5,1,a\n"
LINES = b'{"p":0.25,"y":0}\n{"p":0.75,"y":1}\n{"p":0.5,"y":1}\n'


FORMS = [
    ("comma.csv", TEXT.encode()),
    ("tab.tsv", TEXT.replace(",", "\t").encode()),
    ("bar.txt", TEXT.replace(",", "|").encode()),
    ("blank.txt", TEXT.replace(",", " ").encode()),
    ("blanks.txt", TEXT.replace(",", "   ").encode()),
    ("decimal_comma.csv", TEXT.replace(",", ";").replace("0.", "0,").encode()),
    ("byte_order_mark.csv", b"\xef\xbb\xbf" + TEXT.encode()),
    ("blank_first_line.csv", b"\xef\xbb\xbf\r\n" + TEXT.encode()),
    ("windows_1252.csv", TEXT.replace("a", "ä").encode("cp1252")),
    ("utf_16.txt", TEXT.replace(",", "\t").encode("utf-16")),
    ("carriage_returns.csv", TEXT.replace("\n", "\r").encode()),
    ("windows_lines.csv", TEXT.replace("\n", "\r\n").encode()),
    ("empty_lines.csv", b"p,y\n\n0.25,0\n0.75,1\n\n\n0.5,1\n\n"),
    ("blanks_in_cells.csv", b" p , y\n 0.25, 0\n0.75 ,1\n0.5,1\n"),
    ("quoted.csv", b'"p","y","t"\n0.25,0,"a,b"\n0.75,1,"two\n\nlines"\n0.5,1,"q""q"\n'),
    ("percent.csv", b"p,y\n25%,false\n75 %,TRUE\n50%,True\n"),
    ("late_fraction.csv", b"p,y,n\n0.25,0,1\n0.75,1,2\n0.5,1,x\n"),
    ("gzip.csv.gz", gzip.compress(TEXT.encode())),
    ("zip.csv.zip", zipped({"inner.csv": TEXT})),
    ("lines.jsonl", LINES),
    ("list.json", b"[" + LINES.strip().replace(b"\n", b",") + b"]"),
    ("columns.json", b'{"p":[0.25,0.75,0.5],"y":[0,1,1]}'),
    ("under_a_key.json", b'{"rows": [' + LINES.strip().replace(b"\n", b",") + b"]}"),
]


@pytest.mark.parametrize(("name", "data"), FORMS, ids=[name for name, _ in FORMS])
def test_one_table_in_many_forms(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    read = read_predictions(tmp_path / name)
    np.testing.assert_allclose(read.probs[:, 1], P)
    np.testing.assert_array_equal(read.labels, Y)


def test_the_page_of_formats_has_every_ending_and_format():
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    table = page.partition("\n## Formats\n")[2].partition("\n\n## ")[0]
    cells = " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    endings = {ending for known in FILE_FORMATS for ending in known.endings}
    assert {*re.findall(r"`(\.\w+)`", cells)} == endings
    harnesses = {"lm-eval": "lm-evaluation-harness", "inspect": "Inspect", "helm": "HELM"}
    unnamed = [known.name for known in FILE_FORMATS if not known.endings]
    assert all(harnesses[name] in table for name in unnamed)


@pytest.mark.parametrize("known", [k for k in FILE_FORMATS if k.endings], ids=lambda k: k.name)
def test_formats_have_endings_and_first_bytes_of_their_own(known):
    others = [k for k in FILE_FORMATS if k is not known]
    assert not {*known.endings} & {ending for k in others for ending in k.endings}
    assert known.name in FORMATS
    marks = known.beginning if isinstance(known.beginning, tuple) else (known.beginning,)
    taken = [k.beginning for k in others if k.beginning] + [*PACKED.values()]
    assert not any(mark.startswith(other) for mark in marks for other in taken)


def test_zstandard(tmp_path):
    (tmp_path / "f.csv.zst").write_bytes(zst(TEXT.encode()))
    np.testing.assert_allclose(read_predictions(tmp_path / "f.csv.zst").probs[:, 1], P)


@pytest.mark.parametrize("name", ["f.parquet", "f.arrow", "f.feather", "f.stream.arrow"])
def test_binary_tables(tmp_path, name):
    table = pl.DataFrame({"probs": PROBS.tolist(), "label": LABELS, "more": [{"a": 1}] * 4})
    if name == "f.parquet":
        table.write_parquet(tmp_path / name)
    elif name == "f.stream.arrow":
        table.write_ipc_stream(tmp_path / name)
    else:
        table.write_ipc(tmp_path / name)
    data = read_predictions(tmp_path / name)
    check(data)
    assert data.notes[0] == "read 4 rows, 3 classes from p0, p1, p2, label label, not used: more.a"
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:100])
    refused(tmp_path / name, "not a readable file")


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
    refused(path, "not a readable file")


def test_numpy_archives_and_labels_in_a_second_file(tmp_path):
    np.savez(tmp_path / "f.npz", probs=PROBS, labels=LABELS, seed=np.array(3))
    check(read_predictions(tmp_path / "f.npz"))
    np.save(tmp_path / "p.npy", PROBS)
    np.save(tmp_path / "y.npy", LABELS)
    check(read_predictions(tmp_path / "p.npy", label=tmp_path / "y.npy"))
    refused(tmp_path / "p.npy", "caltest does not recognise a column name as the label")


def test_logits_of_an_archive_are_named(tmp_path):
    np.savez(tmp_path / "f.npz", logits=np.log(PROBS) + 3.0, labels=LABELS)
    check(read_predictions(tmp_path / "f.npz", probs="logits_*", from_logits=True))
    error = refused(tmp_path / "f.npz", "a probability is at most 1", probs="logits_*")
    assert error.readings[0].options["probs"].startswith("logits_0 / 100, ")


class Exploding:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "f.npy", np.array([Exploding()], dtype=object), allow_pickle=True)
    refused(tmp_path / "f.npy", "not unpickled")
    np.savez(tmp_path / "f.npz", probs=np.array([Exploding()], dtype=object))
    refused(tmp_path / "f.npz", "not unpickled")


def test_a_huge_header_of_numpy_is_a_sentence(tmp_path):
    path = tmp_path / "f.npy"
    np.save(path, PROBS)
    small, huge = b"'shape': (4, 3), }", b"'shape': (1000000000000,), }"
    data = path.read_bytes()
    path.write_bytes(data.replace(small + b" " * (len(huge) - len(small)), huge))
    refused(path, "not a readable NumPy file")


def book(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.remove(made.active)
    for k, rows in enumerate(sheets):
        sheet = made.create_sheet(f"Sheet{k + 1}")
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


ROWS = [["p_0", "p_1", "p_2", "label"]]
ROWS += [[*p, y] for p, y in zip(PROBS.tolist(), LABELS.tolist(), strict=True)]


def test_excel(tmp_path):
    titled = [["Results of today"], [], *ROWS]
    check(read_predictions(book(tmp_path / "f.xlsx", titled, [["notes are no table"]])))


def test_several_sheets_with_tables_are_asked_about(tmp_path):
    path = book(tmp_path / "f.xlsx", ROWS, ROWS)
    error = refused(path, "it has the sheets Sheet1, Sheet2: name one")
    sheets = [reading.options for reading in error.readings]
    assert sheets == [{"sheet": "Sheet1"}, {"sheet": "Sheet2"}]
    check(read_predictions(path, sheet="Sheet2"))
    refused(path, "there is no sheet 'sheet'", sheet="sheet")


def test_excel_names_its_extra(tmp_path, monkeypatch):
    path = book(tmp_path / "f.xlsx", ROWS)
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(ImportError, match=r"caltest\[excel\]"):
        read_predictions(path)


def test_lists_of_a_word_and_a_number_are_classes(tmp_path):
    rows = [
        {"scores": [{"label": "cat", "score": 0.75}, {"label": "dog", "score": 0.25}], "y": "dog"},
        {"scores": [{"label": "dog", "score": 0.5}, {"label": "cat", "score": 0.5}], "y": "cat"},
    ]
    data = read_predictions(written(tmp_path / "f.jsonl", "\n".join(map(json.dumps, rows))))
    assert data.classes == ("cat", "dog")
    check(data, [[0.75, 0.25], [0.5, 0.5]], [1, 0])


def test_standard_input_is_known_by_its_beginning(monkeypatch):
    for data in (CSV.encode(), gzip.compress(CSV.encode())):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        check(read_predictions("-"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    with pytest.raises(InvalidPredictionsError, match="standard input: the file is empty"):
        read_predictions("-")


def test_format_of_files_with_other_names(tmp_path):
    path = written(tmp_path / "f.dat", CSV)
    refused(path, r"files of type .dat are unknown; .*: name its format")
    check(read_predictions(path, format="csv"))
    with pytest.raises(ct.StatisticError, match="format must be one of None, 'csv'"):
        read_predictions(path, format="cvs")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("p,y\n", "there are no rows"),
        ("p,y\n0.5,1\n0.5,1,2\n", "line 3 has 3 cells, the header 2"),
        ("p,y,w\n0.5,1,1\n0.5,1\n", "line 3 has 2 cells, the header 3"),
        ("p,y,w\n0.5,1,1\n0.5,1\n0.5,1,1,1\n", "line 3 has 2 cells, the header 3"),
        ('p,y,z\n0.5,1,"a\n,b"\n0.2,0\n', "line 4 has 2 cells, the header 3"),
        ('p,y,z\n0.5,1,a\n0.2,0,"b\n0.1,1,c\n', "a quotation mark opens .* not closed"),
        ("p,y\n0.5,1\n0.2\0,0\n", "line 3 holds a NUL byte"),
        ("p,p,y\n0.5,0.6,1\n", "two columns are called 'p'"),
        ("0.5,1\n0.6,0\n", "the first line holds numbers: add a header"),
        ("p;y\n0,5;1\n0.6;0\n", r"decimal commas and decimal points \(0,5, 0.6\)"),
        ("p,y\nx,1\n0.5,0\n", "p is 'x' in row 1, which is not a number"),
        ("p,y\n" + "1,1\n" * 20_000 + "x,1\n", "p is 'x' in row 20001, which is not a number"),
        ("p;y\n1.234,5;1\n0,5;0\n", "p is '1.234,5' in row 1, .* separators of thousands"),
        ("p,y\n83%,1\n0.8,0\n", r"percent signs, but not in row 2 \(0.8\)"),
    ],
)
def test_damaged_text(tmp_path, text, message):
    refused(written(tmp_path / "f.csv", text), message)


def test_a_short_and_a_long_line_do_not_make_up_for_each_other(tmp_path):
    lines = ["0.5,1,1"] * 1000
    lines[500:502] = ["0.5,1", "0.5,1,1,1"]
    refused(written(tmp_path / "f.csv", "p,y,w\n" + "\n".join(lines)), "line 502 has 2 cells")


def test_late_fractions_change_the_type_of_a_column(tmp_path):
    text = "p,y\n" + "1,1\n" * 20_000 + "0.5,1\n"
    data = read_predictions(written(tmp_path / "f.csv", text))
    assert data.probs[-1, 1] == 0.5


def test_a_line_that_is_wrong_far_down_is_named_by_its_number(tmp_path):
    rows = [f"{k % 100 / 100},{k % 2}" for k in range(60_000)]
    rows[50_000] += ",1"
    refused(written(tmp_path / "f.csv", "p,y\n" + "\n".join(rows)), "line 50002 has 3 cells")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"p": 0.5, "y": 1}\n{"p": ' + "[" * 100_000, "line 2: its brackets are nested too"),
        ('{"p": 0.5, "p": 0.6, "y": 1}', "holds the key 'p' twice"),
        ('{"p": 0.5, "y": 1}\n{"p": 0.5, "p": 0.6, "y": 1}', "line 2: .* the key 'p' twice"),
        ('{"p": 0.5, "y": ' + "1" * 5000 + "}", "limit .* digits"),
        ('[{"p": true, "y": 1}, {"p": false, "y": 0}]', "p holds true and false, .* classes"),
        ('[{"p": 0.5, "y": 1}, 7]', "entry 2 is not an object"),
        ('{"p": [0.5, 0.2], "y": [1]}', "lists are of different lengths"),
        ("[]", "there are no rows"),
    ],
)
def test_damaged_json(tmp_path, text, message):
    refused(written(tmp_path / "f.json", text), message)


def test_labels_with_a_column_for_each_class_are_read_with_a_note(tmp_path):
    P3, rows = (
        [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2]],
        [[1, 0, 0], [0, 0, 1], [0, 1, 0]],
    )
    np.savez(tmp_path / "a.npz", probs=np.array(P3), labels=np.array(rows, dtype=float))
    records = [json.dumps({"probs": p, "label": y}) for p, y in zip(P3, rows, strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(records))
    for name in ("a.npz", "a.jsonl"):
        data = read_predictions(tmp_path / name)
        assert data.labels.tolist() == [0, 2, 1]
        assert "a single 1 in every row" in data.notes[1]
    np.savez(tmp_path / "b.npz", probs=np.array(P3), labels=np.array([[1, 1, 0]] * 3))
    with pytest.raises(InvalidPredictionsError, match="caltest does not recognise a column name"):
        read_predictions(tmp_path / "b.npz")


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ('g,n,d,p\na,"2,082",6,0.305%\nb,910,9,0.9%\n', [2082, 910]),
        ("g\tn\td\tp\na\t2,082\t6\t0.305%\nb\t910\t9\t0.9%\n", [2082, 910]),
        ("g;n;d;p\na;2.082;6;0,305 %\nb;1.234.910;9;0,9 %\n", [2082, 1234910]),
        ("g;n;d;p\n01.2024;2082;6;0,305 %\n12.2024;910;9;0,9 %\n", [2082, 910]),
    ],
    ids=["commas in quotes", "commas", "points", "months"],
)
def test_marks_of_thousands_beside_decimals_with_the_other_mark(tmp_path, run, text, n):
    file = written(tmp_path / "f.csv", text)
    code, _, err = run("audit", file)
    words = shlex.split(err.splitlines()[-1].partition("caltest ")[2])
    assert (code, words[0]) == (2, "grades")
    code, out, err = run(*words, "--json")
    assert code == 0, err
    rows = json.loads(out)["grades"]
    assert [row["n"] for row in rows] == n
    if "01.2024" not in text:
        assert "is the mark of thousands" in " ".join(json.loads(out)["notes"])
    assert [row["probability"] for row in rows] == pytest.approx([0.00305, 0.009])


def test_decimals_of_both_marks_in_one_file_are_refused_beside_thousands(tmp_path):
    text = "n;p;q\n1.200;0,5;0.25\n"
    refused(written(tmp_path / "f.csv", text), r"decimal commas and decimal points \(0,5, 0.25\)")


#: A column of weights, whole numbers with points before the last three digits.
MIXED = "p,y,w\n" + "".join(f"{35 + k % 9},{k % 2},{w}\n" for k, w in enumerate(
    ("950", "1.200", "2.340", "87", "4.001", "512")))  # fmt: skip


def test_numbers_with_two_readings_are_asked_about_with_a_command_for_each(tmp_path, run):
    file = written(tmp_path / "f.csv", MIXED)
    call = ("audit", file, "--probs", "p / 100", "--weights", "w")
    code, _, err = run(*call)
    lines = [line for line in err.splitlines() if line.startswith("if ")]
    assert code == 2
    assert [line.partition(": ")[0] for line in lines] == [
        "if 1.200 in w is 1200", "if 1.200 in w is 1.2",
    ]  # fmt: skip
    weights = []
    for line in lines:
        words = shlex.split(line.partition("caltest ")[2])
        assert run(*words)[0] == 0
        mark = words[words.index("--decimal") + 1]
        weights.append(read_predictions(file, "p / 100", weights="w", decimal=mark).weights)
    assert weights[0].tolist() == [950, 1200, 2340, 87, 4001, 512]
    assert weights[1].tolist() == [950, 1.2, 2.34, 87, 4.001, 512]
    with pytest.raises(DoubtfulInputError, match=r"decimal=',' or decimal='\.'"):
        read_predictions(file, "p / 100", weights="w")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (MIXED, {}),  # a column that is not used
        (MIXED.replace("950", "950.5"), {"weights": "w"}),
        ("p,y\n0.200,1\n0.850,0\n0.900,1\n", {}),
        ("p,y,w\n35,1,1.200\n40,0,2.340\n45,1,1.950\n", {"weights": "w"}),  # ratios only
        ("p,y,g\n35,1,1.200\n40,0,950\n45,1,1.200\n", {"by": "g"}),  # names
    ],
    ids=["unused", "decimals", "fractions", "ratios", "names"],
)
def test_numbers_whose_reading_is_clear_or_does_not_matter_are_not_asked_about(
    tmp_path, text, options
):
    probs = "p" if "0.850" in text else "p / 100"
    assert read_predictions(written(tmp_path / "f.csv", text), probs, **options).n >= 3


def test_counts_of_grades_with_points_of_thousands_have_one_command(tmp_path, run):
    text = "grade,n,events,pd\nA,950,3,1%\nB,1.200,20,2%\nC,2.340,60,3%\n"
    file = written(tmp_path / "f.csv", text)
    code, _, err = run("grades", file)
    (line,) = [line for line in err.splitlines() if line.startswith("run: ")]
    assert (code, line) == (2, f"run: caltest grades {file} --decimal ,")
    code, out, _ = run("grades", file, "--decimal", ",", "--json")
    assert [row["n"] for row in json.loads(out)["grades"]] == [950, 1200, 2340]


def test_arrays_of_other_lengths_are_named(tmp_path):
    others = {"train_y": np.zeros(7), "train_x": np.zeros((7, 2)), "fold": np.zeros(7)}
    np.savez(tmp_path / "f.npz", probs=PROBS, labels=LABELS, image=np.zeros((3, 4, 4)), **others)
    data = read_predictions(tmp_path / "f.npz")
    left = "left out image (3 × 4 × 4), train_y (7), train_x (7 × 2), fold (7): not a value or row"
    assert data.n == len(LABELS)
    assert any(note.startswith(left) for note in data.notes)
    np.savez(tmp_path / "g.npz", probs=PROBS, labels=LABELS[:-1])
    refused(tmp_path / "g.npz", r"label.* left out labels \(\d\): not a value or row for each of")
    refused(tmp_path / "g.npz", r"no column 'labels'.* left out labels", label="labels")


def test_an_event_without_a_time_is_completed_from_the_columns(tmp_path, run):
    rng = np.random.default_rng(5)
    p, years = rng.beta(2, 4, 400).round(3), rng.exponential(4.0, 400).round(2)
    ends = rng.choice(["none", "cancer", "stroke"], 400)
    rows = "".join(
        f"{a},{t},{e},{(e != 'none') * 1}\n" for a, t, e in zip(p, years, ends, strict=True)
    )
    file = written(tmp_path / "f.csv", "risk,years,cause,seen\n" + rows)
    lines = [line for line in run("audit", file, "--event", "cause")[2].splitlines()
             if ", say: " in line]  # fmt: skip
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.partition("caltest ")[2])
        assert words[words.index("--time") + 1] == "years"
        assert "--competing" in words
        assert run(*(w.replace("NUMBER", "5") for w in words), "--n-resamples", "199")[0] == 0
    (line,) = [line for line in run("audit", file, "--event", "seen")[2].splitlines()
               if line.startswith("say: ")]  # fmt: skip
    assert line.endswith("--event seen --time years --horizon NUMBER --probs risk")


@pytest.mark.parametrize("sign", [1, -1])
def test_american_odds_of_one_sign_are_asked_about(tmp_path, run, sign):
    rng = np.random.default_rng(6)
    q = rng.uniform(0.05, 0.49, 600) if sign > 0 else rng.uniform(0.51, 0.95, 600)
    odds = np.rint(100 * (1 - q) / q if sign > 0 else -100 * q / (1 - q)).astype(int)
    won = (rng.random(600) < q) * 1
    rows = "".join(f"{o},{y}\n" for o, y in zip(odds, won, strict=True))
    file = written(tmp_path / "f.csv", "price,won\n" + rows)
    code, _, err = run("audit", file, "--probs", "price", "--label", "won")
    lines = [line for line in err.splitlines() if line.startswith("if ")]
    assert code == 2
    assert [line.partition("price ")[2].partition(":")[0] for line in lines] == (
        ["holds American odds", "is out of NUMBER, say"][: 1 + (sign > 0)]
    )
    words = shlex.split(lines[0].partition("caltest ")[2])
    code, out, err = run(*words, "--n-resamples", "199")
    assert (code, "Verdict: CALIBRATED" in out) == (0, True), err
    named = written(tmp_path / "g.csv", "moneyline,won\n" + rows)
    (line,) = [line for line in run("audit", named)[2].splitlines() if line.startswith("if ")]
    assert "if moneyline holds American odds: " in line


@pytest.mark.parametrize("classes", ["no,yes", ["no", "yes"]])
def test_classes_are_a_list_or_one_text(tmp_path, classes):
    file = written(tmp_path / "f.csv", "a,b,answer\n0.8,0.2,no\n0.3,0.7,yes\n0.4,0.6,no\n")
    data = read_predictions(file, "a, b", "answer", classes=classes)
    assert (data.classes, data.labels.tolist()) == (("no", "yes"), [0, 1, 0])
    arrays = ct.Predictions.of(data.probs, ["no", "yes", "no"], classes=classes)
    assert (arrays.classes, arrays.labels.tolist()) == (("no", "yes"), [0, 1, 0])
    counted = ct.Predictions.of(data.probs, [1, 2, 1], classes="1,…,2")
    assert counted.labels.tolist() == [0, 1, 0]
