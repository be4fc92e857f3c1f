"""Files that are read in batches, and what is left of them when something goes wrong."""

import gzip
import json

import numpy as np
import pytest

import caltest as ct
from caltest.cli import inputs
from caltest.data import doubts
from caltest.data.questions import Rows
from caltest.errors import DoubtfulInputError
from caltest.read import tables
from caltest.tallies import tally
from caltest.tallies.tally import TallyReading

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def smaller_batches(monkeypatch, rows):
    monkeypatch.setattr(tables, "ROWS_A_BATCH", rows)
    monkeypatch.setattr(tables, "FEWEST_A_BATCH", rows)


def rows(seed, n=700):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.6, n)
    return p, (rng.random(n) < p).astype(np.int64)


@pytest.fixture
def parts(tmp_path):
    for j in range(3):
        p, y = rows(j)
        table = pyarrow.table({"id": np.arange(p.size), "p": p, "y": y})
        parquet.write_table(table, tmp_path / f"part-{j}.parquet", row_group_size=100)
    return tmp_path


def whole():
    p, y = (np.concatenate(c) for c in zip(*(rows(j) for j in range(3)), strict=True))
    return ct.Tally.of(p, y)


def test_same_for_any_batches_and_order(parts, monkeypatch):
    found = ct.scan(parts / "part-*.parquet")
    assert found == whole()
    first = "questions of further columns were asked of the first 700 rows"
    assert found.notes == ("read 2100 rows of 3 files, columns p, y", first)
    smaller_batches(monkeypatch, 37)
    assert ct.scan([parts / f"part-{j}.parquet" for j in (2, 0, 1)]) == found


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "txt", "feather", "npz", "jsonl"])
def test_formats(tmp_path, ending):
    p, y = rows(0)
    path, mark = tmp_path / f"rows.{ending}", {"tsv": "\t", "txt": ";"}.get(ending, ",")
    text = "".join(f"{float(a)!r}{mark}{b}\n" for a, b in zip(p, y, strict=True))
    if ending == "feather":
        from pyarrow import feather

        feather.write_feather(pyarrow.table({"p": p, "y": y}), path)
    elif ending == "npz":
        np.savez(path, p=p, y=y)
    elif ending == "jsonl":
        lines = (json.dumps({"p": float(a), "y": int(b)}) for a, b in zip(p, y, strict=True))
        path.write_text("\n".join(lines))
    else:
        content = f"p{mark}y\n{text}".encode()
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert ct.scan(path) == ct.Tally.of(p, y)


def test_columns_of_classes_weights_and_missing_cells(tmp_path):
    data = ct.examples.digits()
    columns = {f"p_{k}": data.probs[:, k] for k in range(10)}
    w = np.tile([1.0, 2.0], data.n // 2)
    table = pyarrow.table({**columns, "label": data.labels, "w": w})
    parquet.write_table(table, tmp_path / "a.parquet")
    asked = {"lens": ct.OneVsRest(3), "weights": "w"}
    expected = ct.Tally.of(data.probs, data.labels, lens=ct.OneVsRest(3), weights=w)
    found = ct.scan(tmp_path / "a.parquet", **asked)
    assert np.array_equal(found.sums, expected.sums)
    assert found.n_classes == 10
    (tmp_path / "b.csv").write_text("p,y\n0.5,1\n,0\n0.25,0\n")
    words = r"b\.csv: p has no value in row 2"
    with pytest.raises(ct.InvalidPredictionsError, match=words):
        ct.scan(tmp_path / "b.csv")
    assert ct.scan(tmp_path / "b.csv", drop_missing=True) == ct.Tally.of([0.5, 0.25], [1, 0])


def test_batches_of_one_label_and_of_weight_0(tmp_path, monkeypatch):
    smaller_batches(monkeypatch, 10)
    p, _ = rows(0, 40)
    y = np.repeat(["no", "yes"], 20)
    w = np.where(np.arange(40) < 15, 0.0, 1.0)
    parquet.write_table(pyarrow.table({"p": p, "y": y, "w": w}), tmp_path / "a.parquet")
    found = ct.scan(tmp_path / "a.parquet", label="y = 'yes'", weights="w", as_is=True)
    assert (found.n, found.classes) == (25, None)
    assert np.array_equal(found.sums, ct.Tally.of(p[15:], (y[15:] == "yes").astype(int)).sums)


def test_text_that_begins_with_whole_numbers(tmp_path):
    p = np.concatenate([np.arange(100) % 2, rows(0, 100)[0]])
    y = np.arange(200) % 2
    y[:100] = p[:100]
    lines = [f"{int(a) if a in (0, 1) else float(a)!r},{b}\n" for a, b in zip(p, y, strict=True)]
    (tmp_path / "a.csv").write_text("p,y\n" + "".join(lines))
    assert ct.scan(tmp_path / "a.csv") == ct.Tally.of(p, y)


def test_rows_are_counted_over_batches(tmp_path, monkeypatch):
    smaller_batches(monkeypatch, 100)
    p, y = rows(0)
    p[432] = 1.5
    parquet.write_table(pyarrow.table({"p": p, "y": y}), tmp_path / "a.parquet")
    with pytest.raises(ct.InvalidPredictionsError, match=r"a\.parquet: .*row 433"):
        ct.scan(tmp_path / "a.parquet")


def test_a_corrupt_part_names_itself_and_nothing_is_lost(parts):
    whole_part = (parts / "part-1.parquet").read_bytes()
    (parts / "part-1.parquet").write_bytes(whole_part[:3000] + b"x" * 500)
    state = parts / "state.json"
    pattern = parts / "part-*.parquet"
    words = r"part-1\.parquet: .* Counted before: 700"
    for _ in range(2):
        with pytest.raises(ct.InvalidPredictionsError, match=words):
            ct.scan(pattern, resume=state)
    (parts / "part-1.parquet").write_bytes(whole_part)
    (parts / "part-0.parquet").touch()
    assert ct.scan(pattern, resume=state) == whole()
    assert ct.scan(pattern, resume=state) == whole()  # all of it from the state
    (parts / "part-0.parquet").rename(parts / "part-9.parquet")
    assert ct.scan(pattern, resume=state) == whole()  # a part is known by its content
    (parts / "part-9.parquet").rename(parts / "part-0.parquet")
    assert not list(parts.glob("*.lock"))  # nobody holds it any more
    words = r"was written with lens=all.*: give the same.*caltest audit or rep"
    with pytest.raises(ct.StatisticError, match=words):
        ct.scan(pattern, resume=state, lens=ct.TopK(1))
    with pytest.raises(ct.StatisticError, match="not among the parts"):
        ct.scan(parts / "part-0.parquet", resume=state)
    (parts / "part-0.parquet").write_bytes(whole_part + b"x")
    with pytest.raises(ct.StatisticError, match="has changed"):
        ct.scan(pattern, resume=state)


def test_interruption_says_what_was_read(parts, monkeypatch, run):
    first = TallyReading.batch

    def interrupted(self, cells, *where):
        if sum(done) >= 1000:
            raise KeyboardInterrupt
        done.append(cells.frame.height)
        return first(self, cells, *where)

    done: list[int] = []
    monkeypatch.setattr(TallyReading, "batch", interrupted)
    smaller_batches(monkeypatch, 100)
    code, _, told = run("audit", parts / "part-*.parquet", "--resume", parts / "state")
    assert (code, "Counted before: 700 rows of 1 of 3 parts; kept in" in told) == (130, True)
    monkeypatch.undo()
    assert ct.scan(parts / "part-*.parquet", resume=parts / "state") == whole()


def test_what_is_no_file(parts):
    with pytest.raises(FileNotFoundError, match="nothing-"):
        ct.scan(parts / "nothing-*.parquet")
    with pytest.raises(ct.StatisticError, match="named twice"):
        ct.scan([parts / "part-0.parquet", parts / "part-*.parquet"])
    (parts / "empty.csv").write_text("p,y\n")
    with pytest.raises(ct.InvalidPredictionsError, match=r"empty\.csv: there are no rows"):
        ct.scan(parts / "empty.csv")
    assert ct.scan([parts / "empty.csv", parts / "part-0.parquet"]).n == 700
    parquet.write_table(pyarrow.table({"prob": [0.5], "y": [1]}), parts / "other.parquet")
    with pytest.raises(ct.InvalidPredictionsError, match=r"other\.p.*no column 'p'"):
        ct.scan([parts / "part-0.parquet", parts / "other.parquet"])


@pytest.mark.parametrize("verb", ["audit", "test", "interval"])
def test_commands_take_many_files(parts, run, verb):
    by_pattern = run(verb, parts / "part-*.parquet")
    assert (by_pattern, by_pattern[0]) == (run(verb, *sorted(parts.glob("part-*.parquet"))), 0)
    assert "read 2100 rows of 3 files" in by_pattern[1]


def test_commands_refuse_what_needs_rows_before_reading(parts, refused, monkeypatch):
    monkeypatch.setattr(TallyReading, "steps", lambda *_: pytest.fail("was read"))
    kept = ("--resume", parts / "state")
    refused("needs the rows", "test", parts / "part-*.parquet", "--statistic", "SKCE()", *kept)
    refused("--by needs rows in memory", "audit", parts / "part-*.parquet", "--by", "id", *kept)


@pytest.mark.parametrize(
    ("words", "batches"),
    [
        ("audit", True),
        ("test", True),
        ("test --statistic Kuiper()", True),
        ("test --statistic slope", True),
        ("interval", True),
        ("gate --tolerance 0.1", True),
        ("test --by id", False),
        ("test --statistic SKCE()", False),
        ("test --null RedrawLabels()", False),
        ("interval --method bootstrap", False),
    ],
)
def test_large_parts_are_counted_in_batches_unless_rows_are_asked_for(
    parts, run, monkeypatch, words, batches
):
    monkeypatch.setattr(inputs, "BYTES_OF_PARTS", 1000)
    scanned, scan = [], ct.scan
    monkeypatch.setattr(ct, "scan", lambda *a, **k: scanned.append(a) or scan(*a, **k))
    verb, *options = words.split()
    run(verb, parts / "part-*.parquet", *options)
    run(verb, parts / "part-0.parquet", *options)  # one file is read whole
    assert len(scanned) == batches


@pytest.fixture
def digits(tmp_path):
    """Ten columns of probabilities, in parts of different length."""
    data = ct.examples.digits("overfit")
    for j, rows in enumerate((slice(0, 400), slice(400, 410), slice(410, None))):
        columns = {f"p_{k}": data.probs[rows, k] for k in range(10)}
        table = pyarrow.table({**columns, "label": data.labels[rows]})
        parquet.write_table(table, tmp_path / f"part-{j}.parquet")
    return tmp_path / "part-*.parquet"


def test_audit_of_many_classes(digits, run, monkeypatch):
    data = ct.examples.digits("overfit")
    found = ct.scan(digits)
    named = ct.Predictions.of(data.probs, data.labels)
    assert (found, found.rows.n) == (ct.Tallies.of(named), 900)
    code, text, _ = run("audit", digits)
    assert (code, "read 900 rows of 3 files" in text) == (0, True)
    smaller_batches(monkeypatch, 37)
    for _ in range(2):
        again = ct.scan(digits, resume=digits.parent / "state")
        assert again == found
        assert sorted(again.rows.probs[:, 0]) == sorted(found.rows.probs[:, 0])
    assert "OneVsRest(3)" in run("test", digits, "--lens", "OneVsRest(3)")[1]
    assert "TopK(1)" in run("interval", digits)[1]
    with pytest.raises(ct.StatisticError, match=r"lens=all that an audit asks, not 'usual'"):
        ct.scan(digits, resume=digits.parent / "state", lens="usual")


def late(path, monkeypatch, **columns):
    """Write 4000 rows of which 200 are looked at as the first."""
    monkeypatch.setattr(tally, "ROWS_FIRST_READ", 200)
    parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.fixture
def beta():
    rng = np.random.default_rng(7)
    p = rng.beta(1.2, 1.8, 4000)
    return p, (rng.random(4000) < p).astype(np.int64), rng


def test_predictions_are_asked_about_by_all_rows(tmp_path, monkeypatch, beta):
    p, y, _ = beta
    p[:200], y[:200] = 0.5, np.arange(200) % 2  # which say nothing
    path = late(tmp_path / "a.parquet", monkeypatch, p=1.0 - p, y=y)
    with pytest.raises(DoubtfulInputError, match=r"y is rarer where p is higher \(area") as caught:
        ct.scan(path)
    assert [dict(r.options) for r in caught.value.readings] == [
        {"probs": "1 - p"}, {"label": "NOT y"},
    ]  # fmt: skip
    assert "read as it is, although y is rarer" in ct.scan(path, as_is=True).notes[1]
    assert ct.scan(path, probs="1 - p").n == 4000


@pytest.mark.parametrize("lens", [None, "usual"])
def test_predicted_classes_are_asked_about_by_all_rows(tmp_path, monkeypatch, beta, lens):
    p, _, _ = beta
    labels = (p > 0.45).astype(np.int64)
    p[:200] = 0.9999  # one label, as likely as it can be: these rows raise no question
    path = late(tmp_path / "a.parquet", monkeypatch, p=p, y=np.where(p == 0.9999, 1, labels))
    with pytest.raises(DoubtfulInputError, match="p decides the label in every row: y seems"):
        ct.scan(path, lens=lens)


@pytest.mark.parametrize("n", [4000, 150])
def test_lone_confidences_are_asked_about_by_all_rows(tmp_path, monkeypatch, n):
    rng = np.random.default_rng(3)
    sure = rng.uniform(0.9, 1.0, n)
    y = rng.random(n) < 0.5
    path = late(tmp_path / "a.parquet", monkeypatch, p=sure, y=y.astype(np.int64))
    with pytest.raises(DoubtfulInputError, match=r"all values of p are at least 0\.5"):
        ct.scan(path)
    assert ct.scan(path, as_is=True).n == n


def test_rows_sorted_by_overconfident_predictions_are_no_confidences(tmp_path, monkeypatch):
    from caltest.read import questioning

    monkeypatch.setattr(questioning, "SEEN", 200)
    rng = np.random.default_rng(3)
    q = np.sort(rng.random(4000))[::-1]
    p = q**3 / (q**3 + (1 - q) ** 3)  # the first rows: all near 1, and less frequent
    path = late(tmp_path / "a.parquet", monkeypatch, p=p, y=(rng.random(4000) < q - q**9 / 5) * 1)
    assert ct.scan(path).n == ct.read_predictions(path).n == 4000


def test_rows_of_a_fit_far_behind_are_asked_about(tmp_path, monkeypatch, beta):
    p, y, _ = beta
    part = np.array(["test"] * 3000 + ["train"] * 1000)
    path = late(tmp_path / "a.parquet", monkeypatch, p=p, y=y, split=part)
    state = tmp_path / "state"
    for _ in range(2):  # read, and taken from the state
        with pytest.raises(
            DoubtfulInputError, match="split separates the rows that the model was trained"
        ):
            ct.scan(path, resume=state)
    assert ct.scan(path, where="split = 'test'").n == 3000
    assert ct.scan(path, resume=state, as_is=True).n == 4000


def test_calibrated_rows_raise_no_question_however_many(tmp_path, monkeypatch, beta):
    p, y, rng = beta
    path = late(tmp_path / "a.parquet", monkeypatch, p=p, y=y, age=rng.integers(20, 90, 4000))
    first = "questions of further columns were asked of the first 200 rows"
    assert ct.scan(path).notes[1:] == (first,)


def test_sums_over_cells_say_what_rows_say(beta):
    p, y, _ = beta
    cells = np.unique(np.round(1.0 - p, 3), return_inverse=True)
    n, events = np.bincount(cells[1]), np.bincount(cells[1], y)
    (by_sums,) = doubts.doubts_of_sums(cells[0], n.astype(float), events.astype(int), {})
    by_rows = doubts.against_outcomes(Rows(cells[0][cells[1]], y))
    assert by_sums.text == by_rows.text


def test_pieces_of_a_file_are_read_one_after_the_other(parts, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_A_PIECE", 130)
    smaller_batches(monkeypatch, 50)
    assert ct.scan(parts / "part-*.parquet") == whole()
    kept = ct.scan(parts / "part-0.parquet", probs="p", where="p > 0.5")
    p, y = rows(0)
    assert kept == ct.Tally.of(p[p > 0.5], y[p > 0.5])


def test_a_cell_in_a_later_piece_is_named_by_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_A_PIECE", 130)
    monkeypatch.setattr(tally, "ROWS_FIRST_READ", 100)
    p, y = rows(0)
    p[333] = np.nan
    parquet.write_table(pyarrow.table({"p": p, "y": y}), tmp_path / "a.parquet")
    with pytest.raises(ct.InvalidPredictionsError, match="p has no value in row 334 "):
        ct.scan(tmp_path / "a.parquet")
    p[333] = 1.5
    parquet.write_table(pyarrow.table({"p": p, "y": y}), tmp_path / "b.parquet")
    with pytest.raises(ct.InvalidPredictionsError, match=r"p is 1\.5 in row 334"):
        ct.scan(tmp_path / "b.parquet", probs="p", where="p > 0.1")
