"""The recipes: short, illustrated, and their commands print what the pages show."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.cli.app import run

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RECIPES = sorted((DOCS / "recipes").glob("*.md"))
FIGURES = sorted((DOCS / "figures").iterdir())
EXIT_CODES = {"check": 1}
"""Of commands that end with another code than 0: the gate of the example is breached."""


def lines(block):
    """Lines without those left out, with plain spaces in place of those that don't break."""
    return [re.sub("[\u00a0\u202f]", " ", line) for line in block.splitlines() if line != "…"]


def text_of(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Work in a folder with the files of a checkout that the recipes name."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    pictures = Path("src", "equipoise", "planted", "people")
    (tmp_path / pictures).parent.mkdir(parents=True)
    (tmp_path / pictures).symlink_to(ROOT / pictures)
    monkeypatch.chdir(tmp_path)


def check_command(line, shown, capsys):
    """Run a command and compare what it prints with the lines of the page."""
    program, *arguments = shlex.split(line)
    if program == "python":
        subprocess.run([sys.executable, *arguments], check=True)
        return
    assert program == "equipoise", line
    capsys.readouterr()
    code = run(arguments)
    output = capsys.readouterr()
    assert code == EXIT_CODES.get(arguments[0], 0), output.err
    printed = iter(lines(output.out))
    for expected in shown:
        assert expected in printed, (line, expected)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_commands_of_a_recipe_print_what_it_shows(path, capsys):
    """Run commands and Python and write named files; a block of text is the output of Python."""
    names, printed = {}, None
    pattern = r"^```(yaml|console|python|text)\n(.*?)^```"
    for language, block in re.findall(pattern, text_of(path), re.DOTALL | re.MULTILINE):
        if name := re.match(r"# (\S+\.(?:yaml|py))\n", block):
            Path(name[1]).write_text(block, encoding="utf-8")
        elif language == "python":
            capsys.readouterr()
            exec(compile(block, str(path), "exec"), names)
            printed = lines(capsys.readouterr().out)
        elif language == "text" and printed is not None:
            assert lines(block) == printed
        elif language == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                check_command(command, lines(output), capsys)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_and_has_its_picture(path):
    text = text_of(path)
    prose = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    assert len(prose.split()) <= 400
    assert "](../figures/" in text
    assert re.match(r"# .+\?\n", text)
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles[0] == "What you need"
    assert titles[-1] == "Next"


def test_the_pictures_are_few_and_small():
    assert len([path for path in FIGURES if path.suffix == ".webp"]) <= 16
    assert [path.name for path in FIGURES if path.stat().st_size > 60_000] == []
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"figures/([\w.-]+)", text_of(page))}
    assert shown == {path.name for path in FIGURES}


def test_the_gallery_has_every_example():
    reports = {*re.findall(r":link: reports/(\w+)/report\.html", text_of(DOCS / "gallery.md"))}
    examples = {path.parent.name for path in (ROOT / "examples").glob("*/make.py")}
    assert reports == examples - {"review"} | {"predictions"}
