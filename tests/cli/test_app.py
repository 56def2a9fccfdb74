"""The command as a whole: help, lazy loading, and every way in which it can fail."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from alone import environment
from equipoise import __version__, audits
from equipoise.cli.app import COMMANDS, GROUPS, app
from equipoise.cli.terminal import has_colours
from equipoise.core import ConfigError
from tools.help_pages import with_help

DEBUG = "EQUIPOISE_DEBUG=1"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(command, arguments):
    code, out, err = command(*arguments)
    assert (code, err) == (0, "")
    text = out.split("--help", 1)[1]
    assert re.findall(r"^  (\w+)  ", text, re.MULTILINE) == app.list_commands(click.Context(app))
    assert re.findall(r"^(\w+):$", text, re.MULTILINE) == [*GROUPS]
    assert {*COMMANDS} == {name for names in GROUPS.values() for name in names}
    assert "Exit codes: 0 done, 1 a gate rule is breached, 2 an error, 130 interrupted." in out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(command, name):
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: equipoise {name} ")
    subcommand = app.get_command(click.Context(app), name)
    assert len(subcommand.get_short_help_str(200)) < 60
    parts = subcommand.commands.values() if isinstance(subcommand, click.Group) else [subcommand]
    assert all("as_json" in [parameter.name for parameter in part.params] for part in parts)
    for part in (subcommand, *parts):
        words, named = part.epilog.removeprefix("Example: equipoise ").split(), app
        while isinstance(named, click.Group):
            named = named.get_command(click.Context(app), words.pop(0))
        # It raises where an option of the example is unknown.
        assert part in (subcommand, named.make_context(named.name, words).command)


def test_the_page_has_the_help_of_every_command():
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    headings = re.findall(r"^##+ (\w+)$", page, re.MULTILINE)
    expected = [part for title, names in GROUPS.items() for part in (title, *names)]
    assert headings[-len(expected) :] == expected
    text = with_help(page)
    assert text.count("Usage: equipoise ") >= len(COMMANDS)
    for usage in ("label settle [OPTIONS] RUN", "counterfactuals plan [OPTIONS] CONFIG", "audit ["):
        assert f"Usage: equipoise {usage}" in text


def test_a_shell_completes_commands():
    words = {
        "COMP_WORDS": "equipoise au",
        "COMP_CWORD": "1",
        "_EQUIPOISE_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [sys.executable, "-m", "equipoise"], env=os.environ | words, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["plain,audit", "plain,augment"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(command, monkeypatch, shell):
    code, out, _ = command("completion", shell)
    assert (code, "_EQUIPOISE_COMPLETE" in out) == (0, True)
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert command("completion") == (0, out, "")


@pytest.mark.parametrize(("variable", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_without_no_color(command, monkeypatch, variable, coloured):
    monkeypatch.setenv("NO_COLOR", variable)
    assert "\x1b" not in command("audti")[2]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert has_colours() == coloured


def test_version(command):
    assert command("--version") == (0, f"equipoise, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["audti"], "'audti'"),
        (["audit"], "CONFIG: missing"),
        (["audit", "x", "--owt"], "'--out'"),
        (["compare"], "RUN...: missing"),
        (["check", "runs/nope"], "runs/nope: "),
        (["audit", "no.yaml"], "'equipoise new no.yaml'"),
    ],
)
def test_a_wrong_command_line_is_one_line(command, arguments, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert named in err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError("a.yaml: bad"), 2, "error: a.yaml: bad\n"),
        (ConfigError("\x1b[31mred\u202e\x00\r"), 2, "error: [31mred\n"),
        (MemoryError(), 2, "error: not enough memory."),
        (OSError(errno.ENOSPC, "No space left on device", "x/y"), 2, "error: x/y: the disk is"),
        (OSError("odd"), 2, DEBUG),
        (ValueError("odd\nand long"), 2, "error: unexpected ValueError: odd. "),
        (KeyboardInterrupt(), 130, "interrupted; nothing half-written is left\n"),
        (click.Abort(), 130, "stopped; nothing was written\n"),
        (SystemExit(143), 2, "(SystemExit: 143)"),
    ],
)
def test_every_failure_is_one_message_and_a_code(
    command, project, monkeypatch, error, code, message
):
    def fails(*args, **kwargs):
        raise error

    monkeypatch.setattr(audits, "run", fails)
    before = sorted(project.iterdir())
    got, out, err = command("audit", "c.yaml", "--out", "run")
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert message in err
    assert sorted(project.iterdir()) == before


def test_the_traceback_is_there_when_asked_for(command, project, monkeypatch):
    def fails(*args, **kwargs):
        raise ValueError("odd")

    monkeypatch.setattr(audits, "run", fails)
    monkeypatch.setenv("EQUIPOISE_DEBUG", "1")
    code, _, err = command("audit", "c.yaml")
    assert code == 2
    assert "Traceback (most recent call last)" in err


def test_a_closed_pipe_of_the_module_is_no_error_of_ours():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


SLOW = """
import time
from equipoise import audits

def run(config, **_):
    print("measuring", flush=True)
    time.sleep(60)

audits.run = run
from equipoise.cli import main
main(["audit", "c.yaml", "--out", "runs/one"])
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_audit_leaves_nothing(project, number, code):
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout.readline() == b"measuring\n"
        assert [path.suffix for path in (project / "runs").iterdir()] == [".partial"]
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, b"interrupted; nothing half-written is left\n")
    assert not (project / "runs").exists()
