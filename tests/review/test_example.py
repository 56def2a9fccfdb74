"""The case in examples/review: each command of its README prints what the README shows."""

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from runpy import run_path

import pytest

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


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Run the commands of the README; return their folder, and the output of each."""
    folder = tmp_path_factory.mktemp("example")
    for name in FILES:
        shutil.copy(EXAMPLE / name, folder)
    outputs = []
    with chdir(folder):
        for (program, *arguments), expected_lines in commands(
            Path("README.md").read_text(encoding="utf-8")
        ):
            if program == "python":
                subprocess.run([sys.executable, *arguments], check=True)
            elif arguments[0] != "review":
                # That serves until it is stopped.
                with redirect_stdout(TextIOWrapper(BytesIO(), encoding="utf-8")) as printed:
                    assert run(arguments) == 0, arguments
                    printed.seek(0)
                    outputs.append((arguments, printed.read().splitlines(), expected_lines))
    return folder, outputs


def test_the_readme_shows_the_output_of_its_commands(example):
    for arguments, output, expected_lines in example[1]:
        lines = iter(output)
        for line in expected_lines:
            assert line in lines, (arguments, line)


def test_answers_come_from_the_planted_labellers(example, monkeypatch):
    folder, _ = example
    monkeypatch.chdir(folder)
    write_answers = run_path("make.py")["write_answers"]
    for labeller, errors, file in (
        ("ann", 0.02, "answers-ann.json"), ("bo", 0.08, "answers-bo.csv"),
    ):  # fmt: skip
        content = Path(file).read_bytes()
        write_answers("label.html", labeller, errors, file)
        assert Path(file).read_bytes() == content
