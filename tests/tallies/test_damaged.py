"""Tallies, states and monitors that are damaged are refused by name; changed parts are noticed."""

import json
import os

import numpy as np
import pytest

import caltest as ct
from caltest._base.saving import sealed

P, Y = [0.8, 0.3, 0.6, 0.1], [1, 0, 1, 0]
DEEP = "[" * 200_000


def changed_tally(**cells):
    """Return a tally of four rows, with changed columns and a fitting checksum."""
    content = json.loads(ct.Tally.of(P, Y).to_json())
    content.pop("checksum", None)
    content["cells"] |= cells
    return sealed(content)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"events": [2, 0, 1, 1]}, "in cell 0 events are above n"),
        ({"events": [0, -1, 1, 1]}, "in cell 1 events are below 0"),
        ({"n": [1, -1, 2, 2]}, "in cell 1 n is below 1"),
        ({"n": [1, 1, 1, 1.0]}, r"n of cell 3 is 1\.0, not a whole number"),
        ({"n": [1, 1, 1, "1"]}, "n of cell 3 is '1', not a whole number"),
        ({"n": [1, 1, 1, True]}, "n of cell 3 is True, not a whole number"),
        ({"t1": [float("nan"), 0, 0, 0]}, "t1 of cell 0 is nan, not a whole number"),
        ({"t1": [2**40, 0, 0, 0]}, r"in cell 0 t1 is not of n positions in \[-1, 1\]"),
        ({"t2": [0, 0, -1, 0]}, r"in cell 2 t2 is not of n squares in \[0, 1\]"),
        ({"key": [10**9, 0, 0, 0]}, "in cell 0 the cell is not one of the grid"),
        ({"n": [1, 1, 1, 2**70]}, "n of cell 3 is"),
        ({"n": 4}, "n is no list"),
    ],
)
def test_sums_that_no_rows_have_are_refused_by_name(cells, words):
    with pytest.raises(ct.InvalidPredictionsError, match=words):
        ct.Tally.from_json(changed_tally(**cells))


def test_a_tally_that_lost_a_row_within_the_limits_is_refused():
    text = ct.Tally.of([0.8, 0.8, 0.3], [1, 1, 0]).to_json()
    damaged = text.replace('"events": [0, 2]', '"events": [0, 1]')
    assert damaged != text
    with pytest.raises(ct.InvalidPredictionsError, match="checksum"):
        ct.Tally.from_json(damaged)


def test_tallies_of_which_a_sampled_row_has_changed_are_refused():
    text = ct.Tallies.of(P, Y).to_json()
    content = json.loads(text)
    content["sample"]["rows"]["n"] += 1
    with pytest.raises(ct.InvalidPredictionsError, match="checksum"):
        ct.Tallies.from_json(json.dumps(content))


@pytest.mark.parametrize("kind", [ct.Tally, ct.Tallies, ct.Monitor, ct.ComparisonMonitor])
def test_deep_json_is_one_sentence(kind):
    with pytest.raises(ct.InvalidPredictionsError, match="nested too deep"):
        kind.from_json(DEEP)


@pytest.mark.parametrize("text", ["{}", "[]", "3", "null", '{"lens": null}', "", '{"n": 1'])
@pytest.mark.parametrize("kind", [ct.Monitor, ct.ComparisonMonitor])
def test_what_is_no_monitor_is_refused(kind, text):
    with pytest.raises(ct.InvalidPredictionsError, match=f"no {kind.__name__} of caltest"):
        kind.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", -1), ("n", 2.5), ("n", "4"), ("n", None), ("n", True), ("alpha", "x"),
        ("alpha", float("nan")), ("past", "~"), ("past", 3), ("alarm", 99), ("alarm", -2),
        ("every", 0), ("steps", 10**9), ("change", 1),
    ],
)  # fmt: skip
def test_a_damaged_monitor_is_refused_by_name(field, value):
    content = ct.Monitor().update(P, Y).as_dict() | {field: value}
    with pytest.raises(ct.InvalidPredictionsError, match="no Monitor of caltest"):
        ct.Monitor.from_json(json.dumps(content))


def test_a_sound_monitor_is_rebuilt():
    watch = ct.Monitor().update(P, Y)
    assert ct.Monitor.from_json(watch.to_json()) == watch


# ------------------------------------------------------------------------------
# Parts of a scan.


def test_verify_without_a_state_is_refused(part):
    with pytest.raises(ct.StatisticError, match="verify=True compares files with a state"):
        ct.scan(part, verify=True)


@pytest.fixture
def part(tmp_path):
    rng = np.random.default_rng(1)
    p = rng.random(300_000).round(3)
    y = (rng.random(p.size) < p).astype(int)
    path = tmp_path / "part.csv"
    path.write_text("p,y\n" + "".join(f"{a:.3f},{b}\n" for a, b in zip(p, y, strict=True)))
    os.utime(path, (1e9, 1e9))
    return path


def change_between_pieces(path, keep_time):
    """Change a label of a row that no sample of 16 pieces sees, and keep the size."""
    content = bytearray(path.read_bytes())
    row = content.index(b"\n", int(len(content) * 1.5 / 15)) - 1
    content[row] ^= 1  # "0" and "1"
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, (1e9, 1e9) if keep_time else (2e9, 1.1e9))


def test_a_part_that_changed_between_samples_is_noticed(part, tmp_path):
    state = tmp_path / "S.json"
    ct.scan(part, resume=state)
    change_between_pieces(part, keep_time=False)
    with pytest.raises(ct.StatisticError, match=r"part\.csv has changed since it was counted"):
        ct.scan(part, resume=state)


def test_verify_compares_content_where_size_and_time_are_equal(part, tmp_path):
    state = tmp_path / "S.json"
    ct.scan(part, resume=state)
    change_between_pieces(part, keep_time=True)
    ct.scan(part, resume=state)  # trusted, as documented
    with pytest.raises(ct.StatisticError, match="has changed"):
        ct.scan(part, resume=state, verify=True)


def test_a_touched_or_copied_part_is_known_by_its_content(part, tmp_path):
    state = tmp_path / "S.json"
    before = ct.scan(part, resume=state)
    os.utime(part, (1.2e9, 1.2e9))
    assert ct.scan(part, resume=state, verify=True) == before
    part.rename(tmp_path / "other.csv")
    assert ct.scan(tmp_path / "other.csv", resume=state) == before


def test_a_copy_is_refused_and_a_copy_with_one_other_label_is_not(part, tmp_path):
    other = tmp_path / "other.csv"
    other.write_bytes(part.read_bytes())
    with pytest.raises(ct.StatisticError, match="is a copy of"):
        ct.scan([part, other])
    change_between_pieces(other, keep_time=True)
    assert ct.scan([part, other]).n == 600_000


def test_a_damaged_state_is_refused_by_name(part, tmp_path):
    state = tmp_path / "S.json"
    ct.scan(part, resume=state)
    state.write_text(state.read_text().replace("part.csv", "trap.csv"))
    with pytest.raises(ct.InvalidPredictionsError, match=r"S\.json is damaged: its checksum"):
        ct.scan(part, resume=state)


@pytest.mark.parametrize("text", ["{}", DEEP, "", "\x00", '{"caltest scan": 5}'])
def test_a_foreign_state_has_the_next_name_as_its_remedy(part, tmp_path, text):
    state = tmp_path / "S.json"
    state.write_text(text)
    with pytest.raises(ct.InvalidPredictionsError, match=r"S\.json") as info:
        ct.scan(part, resume=state)
    assert [dict(r.options) for r in info.value.readings] == [
        {"resume": str(tmp_path / "S-2.json")}
    ]
    assert state.read_text() == text
