"""What the progress bar writes, where, and when it keeps silent."""

import io

import pytest

from graphratio._utils.progress import ProgressBar, duration


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(stream, *, enabled=True, total=4):
    with ProgressBar(total, "folds", enabled=enabled, stream=stream) as bar:
        for _ in range(total):
            bar.advance()
    return stream.getvalue()


def test_plain_streams_get_start_and_end_only():
    assert run(io.StringIO()) == "folds: 0/4\nfolds: 4/4 in 0 s\n"


def test_terminals_are_redrawn_in_place():
    lines = run(Terminal()).split("\r")
    assert lines[0] == f"folds: [{'.' * 20}] 0/4"
    assert lines[2] == f"folds: [{'#' * 10}{'.' * 10}] 2/4"
    assert lines[-1] == f"folds: [{'#' * 20}] 4/4 in 0 s\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_silent_when_disabled(stream):
    assert run(stream, enabled=False) == ""


def test_nothing_to_do_is_no_division_by_zero():
    assert "0/0" in run(Terminal(), total=0)


def fail_after_one(stream):
    with ProgressBar(3, "folds", enabled=True, stream=stream) as bar:
        bar.advance()
        raise RuntimeError("stop")


def test_errors_pass_and_the_line_is_closed():
    stream = Terminal()
    with pytest.raises(RuntimeError, match="stop"):
        fail_after_one(stream)
    assert stream.getvalue().endswith("1/3 in 0 s\n")


def test_standard_error_is_the_default(capsys):
    with ProgressBar(1, "folds", enabled=True) as bar:
        bar.advance()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("folds: 0/1")


def slow(stream, monkeypatch):
    """Run with a clock that moves on by ten seconds at every look."""
    ticks = iter(range(0, 10_000, 10))
    monkeypatch.setattr("time.monotonic", lambda: float(next(ticks)))
    with ProgressBar(4, "cells", enabled=True, stream=stream) as bar:
        for _ in range(4):
            bar.advance()
    return stream.getvalue()


def test_terminals_are_told_how_long_the_rest_takes(monkeypatch):
    lines = slow(Terminal(), monkeypatch).split("\r")
    # Ten seconds after one of four, twenty after two: three and two more of them.
    assert lines[1].endswith("1/4, about 30 s left")
    assert lines[2].endswith("2/4, about 20 s left")


def test_a_shorter_line_covers_the_longer_one_before(monkeypatch):
    lines = slow(Terminal(), monkeypatch).split("\r")
    assert len(lines[4]) == len(lines[3])
    assert lines[4].rstrip().endswith("4/4")


@pytest.mark.parametrize(("seconds", "words"), [(7.2, "7 s"), (130, "2 min"), (7300, "2 h 2 min")])
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
