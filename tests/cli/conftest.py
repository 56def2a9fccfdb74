"""A small project in the working directory, and measuring faked: the commands are under test."""

from pathlib import Path

import pytest

from cli.project import CONFIG, data, result
from equipoise import audits
from equipoise.cli.app import run


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{'xy'[i % 2]},{'ab'[i // 2 % 2]}" for i in range(8)]
    Path("labels.csv").write_text("id,y,g\n" + "\n".join(rows) + "\n")
    Path("m.csv").write_text("id,p\n" + "\n".join(f"{i},x" for i in range(8)) + "\n")
    Path("c.yaml").write_text(CONFIG)

    def measured(ready, **_):
        return result(ready.config)

    monkeypatch.setattr(audits, "load", lambda config, base: data(), raising=False)
    monkeypatch.setattr(audits, "run", measured, raising=False)
    return tmp_path


@pytest.fixture
def command(capsys):
    """Run the command line here; give its exit code, stdout and stderr."""

    def ran(*arguments):
        capsys.readouterr()
        code = run([*arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return ran
