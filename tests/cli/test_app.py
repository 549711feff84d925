import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import graphratio
from graphratio import cli
from graphratio.cli.app import app

runner = CliRunner()


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"graphratio {graphratio.__version__}"


def test_demo_prints_every_node_and_ranks_the_clusters():
    result = runner.invoke(app, ["demo"])
    assert result.exit_code == 0
    text = result.stdout
    assert all(f" {node} " in text for node in range(40))
    line = next(line for line in text.splitlines() if line.startswith("Mean divergence"))
    words = line.split(":")[1].replace(",", "").split()
    means = dict(zip(words[::2], map(float, words[1::2]), strict=True))
    assert means["C4"] > means["C1"] > max(means["C2"], means["C3"])


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
    assert 'pip install "graphratio[cli]"' in capsys.readouterr().err
