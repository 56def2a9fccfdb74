"""The case in examples/review: each command of its README prints what the README shows."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from equipoise.cli.app import run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "review"
FILES = ("README.md", "audit.yaml", "make.py", "answers-ann.json", "answers-bo.csv",
         "answers-settled.csv", "answers-next.csv")  # fmt: skip


def commands(text):
    """Yield each command of the console blocks, and the lines that it prints."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield shlex.split(command), [line for line in output.splitlines() if line != "…"]


def test_the_readme_shows_the_output_of_its_commands(tmp_path, monkeypatch, capsys):
    for name in FILES:
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    for (program, *arguments), expected_lines in commands(
        Path("README.md").read_text(encoding="utf-8")
    ):
        if program == "python":
            subprocess.run([sys.executable, *arguments], check=True)
            continue
        if arguments[0] == "review":
            # It serves until it is stopped.
            continue
        capsys.readouterr()
        assert run(arguments) == 0, capsys.readouterr().err
        printed = iter(capsys.readouterr().out.splitlines())
        for line in expected_lines:
            assert line in printed, (arguments, line)


def test_answers_come_from_the_planted_labellers(tmp_path, monkeypatch):
    for name in FILES:
        shutil.copy(EXAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "make.py"], check=True)
    assert run(["audit", "audit.yaml", "--out", "run"]) == 0
    assert run(["label", "sample", "run", "--question", "right", "--size", "120"]) == 0
    for labeller, errors, file in (
        ("ann", "0.02", "answers-ann.json"), ("bo", "0.08", "answers-bo.csv"),
    ):  # fmt: skip
        content = Path(file).read_bytes()
        subprocess.run(
            [sys.executable, "make.py", "label.html", labeller, errors, file], check=True
        )
        assert Path(file).read_bytes() == content
