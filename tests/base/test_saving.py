"""What is written is written whole, where it belongs, and nothing of the user is touched."""

import os
import stat
import sys

import pytest

import caltest as ct
from caltest._base import saving

resource = pytest.importorskip("resource")


@pytest.fixture
def page():
    return ct.report(ct.examples.GaussianMixture(0.0, -1.0).sample(200, rng=1), rng=0)


@pytest.fixture
def full_disk(page):
    """No file can grow beyond 64 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def part(tmp_path):
    path = tmp_path / "part.csv"
    path.write_text("p,y\n0.8,1\n0.3,0\n0.6,1\n")
    return path


def test_a_full_disk_leaves_the_old_report(tmp_path, page, full_disk):
    path = tmp_path / "report.json"
    path.write_text("old")
    with pytest.raises(OSError, match=r"report\.json"):
        page.save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_full_disk_leaves_no_part_of_a_new_file(tmp_path, full_disk):
    with pytest.raises(OSError, match=r"new\.txt"):
        saving.write_file(tmp_path / "new.txt", "x" * 1000)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o777])
def test_the_mode_of_an_old_file_is_kept(tmp_path, mode):
    path = tmp_path / "report.md"
    path.touch()
    path.chmod(mode)
    saving.write_file(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "new"


def test_a_new_file_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        saving.write_file(tmp_path / "new.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_target_is_replaced_whole(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    saving.write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["target.txt"]


def test_a_link_to_nothing_makes_its_target(tmp_path):
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "target.txt")
    saving.write_file(link, "new")
    assert (tmp_path / "target.txt").read_text() == "new"
    assert link.is_symlink()


def test_a_reader_of_the_old_file_sees_it_whole(tmp_path, page):
    path = tmp_path / "report.json"
    path.write_text("old")
    with path.open() as reader:
        page.save(path)
        assert reader.read() == "old"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root writes everything")
def test_a_read_only_file_is_refused(tmp_path):
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        saving.write_file(path, "new")
    assert path.read_text() == "old"


def test_a_device_is_written_directly():
    saving.write_file("/dev/null", "x")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)


def test_files_of_the_user_beside_a_state_are_untouched(part, tmp_path):
    state, theirs = tmp_path / "S.json", {"S.json.lock": "mine", "S.json.new": "mine too"}
    for name, text in theirs.items():
        (tmp_path / name).write_text(text)
    ct.scan(part, resume=state)
    assert {name: (tmp_path / name).read_text() for name in theirs} == theirs
    assert sorted(os.listdir(tmp_path)) == ["S.json", *sorted(theirs), "part.csv"]


def test_a_link_beside_a_state_is_not_followed(part, tmp_path):
    precious, state = tmp_path / "precious.txt", tmp_path / "S.json"
    precious.write_text("precious")
    (tmp_path / "S.json.new").symlink_to(precious)
    ct.scan(part, resume=state)
    assert precious.read_text() == "precious"


def test_a_file_with_the_name_of_a_lock_is_refused_and_left(part, tmp_path):
    theirs = tmp_path / ".S.json.caltest-lock"
    theirs.write_text("my notes")
    with pytest.raises(FileExistsError, match="no lock of caltest"):
        ct.scan(part, resume=tmp_path / "S.json")
    assert theirs.read_text() == "my notes"


def test_two_links_to_a_state_have_one_lock(tmp_path):
    state, link = tmp_path / "S.json", tmp_path / "link.json"
    state.write_text("{}")
    link.symlink_to(state)
    with saving.locked(link):
        assert os.path.lexists(tmp_path / ".S.json.caltest-lock")
    assert sorted(os.listdir(tmp_path)) == ["S.json", "link.json"]


def test_the_next_name_of_a_state_is_free(tmp_path):
    (tmp_path / "S-2.json").touch()
    assert saving.next_name(tmp_path / "S.json") == tmp_path / "S-3.json"
