import os
import re
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

import graphratio
from graphratio import cli
from graphratio.cli.app import app
from graphratio.cli.console import _OPTIONS

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"graphratio {graphratio.__version__}"


def test_what_messages_call_an_option_is_one():
    commands = typer.main.get_command(app).commands.values()
    options = {name for command in commands for part in command.params for name in part.opts}
    names = set(typer.main.get_command(app).commands)
    for spelling in _OPTIONS.values():
        said = set(re.findall(r"--[a-z-]+", spelling))
        asked = set(re.findall(r"graphratio ([a-z]+)", spelling))
        assert said | asked
        assert said <= options
        assert asked <= names


def test_unknown_command_is_a_usage_error():
    assert runner.invoke(app, ["nonsense"]).exit_code == 2


def test_module_runs():
    run = subprocess.run(
        [sys.executable, "-m", "graphratio", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert graphratio.__version__ in run.stdout


def test_without_typer_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert 'pip install ".[cli]"' in capsys.readouterr().err
