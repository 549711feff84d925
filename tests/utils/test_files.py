"""Files appear as a whole or not at all, however the writing ends."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from contextlib import nullcontext

import pytest

from graphratio._utils import files
from graphratio._utils.files import appearing, staged
from graphratio.exceptions import InputError


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture(params=[OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def stop(request):
    return request.param


def half(writing, stop, name=""):
    """Begin to write and be stopped."""
    with writing as rough:
        (rough / name if name else rough).write_text("half")
        raise stop


class TestAppearing:
    def test_a_failure_keeps_the_old_file(self, tmp_path, stop):
        path = tmp_path / "table.csv"
        path.write_text("old")
        with pytest.raises(type(stop)):
            half(appearing(path), stop)
        assert names(tmp_path) == ["table.csv"]
        assert path.read_text() == "old"

    def test_a_failure_leaves_no_new_file(self, tmp_path, stop):
        with pytest.raises(type(stop)):
            half(appearing(tmp_path / "table.csv"), stop)
        assert names(tmp_path) == []

    def test_errors_of_the_disk_name_the_file(self, tmp_path):
        with (
            pytest.raises(OSError, match=r"No space left.*table\.csv"),
            appearing(tmp_path / "table.csv") as rough,
        ):
            raise OSError(errno.ENOSPC, "No space left on device", str(rough))

    def test_other_errors_keep_their_name(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere"), appearing(tmp_path / "a"):
            (tmp_path / "nowhere").read_text()

    def test_what_is_not_finished_is_not_found_by_its_ending(self, tmp_path):
        with appearing(tmp_path / "cell.json") as rough:
            rough.write_text("{")
            assert list(tmp_path.glob("*.json")) == []

    def test_links_are_followed(self, tmp_path):
        (tmp_path / "far").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "far" / "table.csv")
        with appearing(tmp_path / "link") as rough:
            rough.write_text("new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "table.csv").read_text() == "new"

    def test_devices_are_written_to_and_not_replaced(self):
        with appearing("/dev/null") as rough:
            rough.write_text("gone")
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        with pytest.raises(OSError, match="No space left"), appearing("/dev/full") as rough:
            rough.write_text("too much")

    def test_permissions_are_the_usual_ones_or_stay(self, tmp_path):
        (tmp_path / "plain").touch()
        for name in ("new", "kept"):
            if name == "kept":
                (tmp_path / name).touch(mode=0o640)
                (tmp_path / name).chmod(0o640)
            with appearing(tmp_path / name) as rough:
                rough.write_text("x")
        modes = {n: stat.S_IMODE((tmp_path / n).stat().st_mode) for n in names(tmp_path)}
        assert modes["new"] == modes["plain"]
        assert modes["kept"] == 0o640

    def test_the_longest_name(self, tmp_path):
        name = "x" * 251 + ".csv"
        with appearing(tmp_path / name) as rough:
            rough.write_text("x")
        assert names(tmp_path) == [name]

    def test_places_that_are_refused(self, tmp_path):
        with pytest.raises(InputError, match="is a folder"), appearing(tmp_path):
            pass
        with pytest.raises(InputError, match="cannot write to"), appearing(tmp_path / "no" / "a"):
            pass


class TestStaged:
    def test_all_files_or_none(self, tmp_path, stop):
        folder = tmp_path / "results"
        folder.mkdir()
        (folder / "a").write_text("old a")
        (folder / "other").write_text("not ours")
        with pytest.raises(type(stop)):
            half(staged(folder), stop, "a")
        assert names(folder) == ["a", "other"]
        assert (folder / "a").read_text() == "old a"
        with staged(folder) as rough:
            (rough / "a").write_text("new a")
            (rough / "b").write_text("new b")
        assert names(folder) == ["a", "b", "other"]
        assert (folder / "a").read_text() == "new a"

    def test_a_new_folder_is_gone_after_a_failure(self, tmp_path, stop):
        with pytest.raises(type(stop)):
            half(staged(tmp_path / "results"), stop, "a")
        assert names(tmp_path) == []

    def test_earlier_files_that_must_not_stay(self, tmp_path):
        for name in ("report.html", "mine.txt"):
            (tmp_path / name).write_text("old")
        with staged(tmp_path, replaces=["report.html"]) as rough:
            (rough / "nodes.csv").write_text("new")
        assert names(tmp_path) == ["mine.txt", "nodes.csv"]
        with staged(tmp_path, replaces=["nodes.csv"]) as rough:
            (rough / "nodes.csv").write_text("newer")
        assert (tmp_path / "nodes.csv").read_text() == "newer"

    def test_a_folder_of_results_is_exchanged_in_one_step(self, tmp_path, monkeypatch):
        folder = tmp_path / "results"
        for generation in ("1", "2", "3"):
            with staged(folder, replaces=["page"]) as rough:
                for name in ("a", "b", *(["page"] if generation == "1" else [])):
                    (rough / name).write_text(generation)
                monkeypatch.setattr(os, "replace", None)
            monkeypatch.undo()
            assert {entry.read_text() for entry in folder.iterdir()} == {generation}
        assert names(folder) == ["a", "b"]
        assert names(tmp_path) == ["results"]

    def test_a_file_that_comes_just_before_the_exchange_stays(self, tmp_path, monkeypatch):
        folder = tmp_path / "results"
        folder.mkdir()
        (folder / "a").write_text("old")
        exchanged = files._exchanged

        def late(one, other):
            (folder / "mine.txt").write_text("mine")
            return exchanged(one, other)

        monkeypatch.setattr(files, "_exchanged", late)
        with staged(folder) as rough:
            (rough / "a").write_text("new")
        assert {name: (folder / name).read_text() for name in names(folder)} == {
            "a": "new",
            "mine.txt": "mine",
        }
        assert names(tmp_path) == ["results"]

    def test_what_is_flushed_is_open_for_writing(self, tmp_path, monkeypatch):
        # Windows refuses to flush a file that is open for reading.
        flushed = []

        def flush(descriptor):
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                flushed.append(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE)

        monkeypatch.setattr(os, "fsync", flush)
        with staged(tmp_path / "results") as rough:
            (rough / "a").write_text("new")
        assert flushed == [os.O_RDWR]

    @pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
    def test_file_systems_that_flush_no_folders(self, tmp_path, monkeypatch, number):
        def flush(descriptor):
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", flush)
        refused = pytest.raises(OSError, match="results") if number == errno.EIO else nullcontext()
        with refused, staged(tmp_path / "results") as rough:
            (rough / "a").write_text("new")
        assert (tmp_path / "results").exists() == (number == errno.EINVAL)

    def test_the_mode_of_the_folder_stays(self, tmp_path):
        folder = tmp_path / "results"
        folder.mkdir()
        folder.chmod(0o750)
        with staged(folder) as rough:
            (rough / "a").write_text("new")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o750

    @pytest.mark.parametrize("why", ["no exchange", "current", "read-only parent"])
    def test_files_one_by_one_where_no_exchange_is_possible(self, tmp_path, monkeypatch, why):
        folder = tmp_path / "results"
        folder.mkdir()
        (folder / "a").write_text("old")
        (folder / "page").write_text("old")
        before = folder.stat().st_ino
        if why == "no exchange":
            monkeypatch.setattr(files, "_exchanged", lambda *_: False)
        elif why == "current":
            monkeypatch.chdir(folder)
        else:
            monkeypatch.setattr(os, "access", lambda *_: False)
        with staged(folder, replaces=["page"]) as rough:
            (rough / "a").write_text("new")
        assert folder.stat().st_ino == before
        assert names(folder) == ["a"]
        assert (folder / "a").read_text() == "new"

    def test_what_killed_processes_leave_is_removed(self, tmp_path):
        folder, other = tmp_path / "results", tmp_path / "others"
        code = (
            "import os, sys; from pathlib import Path\n"
            "from graphratio._utils.files import appearing, staged\n"
            "for place in sys.argv[1:]:\n"
            "    if not (child := os.fork()):\n"
            "        with staged(Path(place)) as rough, appearing(place + '.csv') as file:\n"
            "            (rough / 'a').write_text('half'); os._exit(9)\n"
            "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9\n"
        )
        subprocess.run([sys.executable, "-c", code, folder, other], check=True, timeout=60)
        assert len(names(tmp_path)) == 4
        with staged(folder) as rough, appearing(f"{folder}.csv") as file:
            # What a running process uses stays.
            with staged(folder) as second:
                (second / "a").write_text("second")
            assert rough.exists()
            (rough / "a").write_text("first")
            file.write_text("new")
        left = names(tmp_path)
        assert [name for name in left if not name.startswith(".")] == ["results", "results.csv"]
        assert len(left) == 4  # those of the other targets
        assert (folder / "a").read_text() == "first"

    def test_files_that_appear_in_a_staged_folder(self, tmp_path):
        with staged(tmp_path / "results") as rough, appearing(rough / "a") as file:
            file.write_text("new")
        assert names(tmp_path / "results") == ["a"]

    def test_a_lock_that_is_never_released_does_not_hang(self, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "_PATIENCE", 0.05)
        held = files._lock(tmp_path)
        with staged(tmp_path / "results") as rough:
            (rough / "a").write_text("new")
        os.close(held)
        assert names(tmp_path) == ["results"]

    def test_a_folder_in_the_place_of_a_file_is_named(self, tmp_path):
        (tmp_path / "nodes.csv").mkdir()
        with pytest.raises(OSError, match=r"nodes\.csv"), staged(tmp_path) as rough:
            (rough / "nodes.csv").write_text("new")
        assert names(tmp_path) == ["nodes.csv"]
