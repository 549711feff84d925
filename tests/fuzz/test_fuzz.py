"""A small part of the fuzzer's inputs, and proof that its judge finds faults."""

import os
import time

import pytest
import typer

from tests.fuzz import judge as judging
from tests.fuzz import run as running
from tests.fuzz.cases import Case, case
from tests.fuzz.judge import judge
from tests.fuzz.run import run


def test_an_input_is_a_function_of_its_seed(monkeypatch):
    """And not of the time, which archives would keep."""
    now = time.time()
    first = [case(seed) for seed in range(20)]
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    assert first == [case(seed) for seed in range(20)]


def test_hostile_input_gives_a_result_or_one_message(tmp_path):
    codes = set()
    for seed in range(10**6, 10**6 + 200):
        verdict = judge(case(seed), tmp_path)
        assert verdict.faults == [], seed
        codes.add(verdict.code)
    assert codes == {0, 1, 2}


def test_a_finished_run_is_not_repeated(tmp_path):
    found = run(0, 20, 1, tmp_path, piece=20)
    assert (found["inputs"], found["seeds"], found["faults"]) == (20, [[0, 19]], [])
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace('"faults": []', '"faults": ["kept"]'))
    assert run(0, 20, 1, tmp_path, piece=20)["faults"] == ["kept"]


def test_an_input_that_kills_its_process_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run_piece", lambda first, count: os._exit(1))
    with pytest.raises(RuntimeError, match=r"pieces of 20 inputs from \[0, 20, 40, 60\]"):
        run(0, 200, 2, tmp_path, piece=20)
    assert not list(tmp_path.iterdir())


def bare():
    raise ZeroDivisionError


def endless():
    while True:
        pass


def printing(text, code=0, *, err=False):
    def command():
        typer.echo(text, err=err)
        raise typer.Exit(code)

    return command


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (bare, "ZeroDivisionError"),
        (endless, "hang"),
        (printing("{'a': 1}"), "not JSON"),
        (printing('{"settings": {"alpha": NaN}}'), "NaN is no JSON"),
        (printing('{"settings": {"alpha": null}}'), "no alpha"),
        (printing('{"ratios": {"ratio": [1, null]}}'), "a ratio that is no number"),
        (printing("{}", 1), "and yet a result"),
        (printing("error: a\nerror: b", 1, err=True), "not one error and one hint"),
        (printing("error: a\nhint: b\nx.py:3: RuntimeWarning", 1, err=True), "internals"),
        (printing("error: \x07\nhint: b", 1, err=True), "control characters"),
        (printing("{}", 3), "exit code 3"),
    ],
)
def test_the_judge_finds_faults(command, fault, tmp_path, monkeypatch):
    app = typer.Typer(pretty_exceptions_enable=False)
    # Typer would make a program with one command only a program without commands.
    app.command("other")(bare)

    @app.command("info")
    def info(json: bool = False):
        command()

    monkeypatch.setattr(judging, "program", lambda: typer.main.get_command(app))
    # Only what never ends may be stopped early: on a busy machine anything else takes a while.
    limit = 0.2 if command is endless else judging.LIMIT
    verdict = judge(Case(0, {}, ["info", "--json"]), tmp_path, limit=limit)
    assert fault in "".join(verdict.faults)
