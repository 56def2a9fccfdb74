"""The command as a whole: help, lazy loading, and every way in which it can fail."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from equipoise import __version__
from equipoise.cli.app import _COMMANDS, app
from equipoise.core import ConfigError, DataError, MissingExtraError, RunError

Command = Callable[..., tuple[int, str, str]]
EXITED = "a library or a model ended the command by itself"
DEBUG = "To do: set EQUIPOISE_DEBUG=1 to see the traceback, and report it with the command"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(command: Command, arguments: list[str]) -> None:
    code, out, err = command(*arguments)
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in out.split("Commands:")[1].splitlines() if line]
    assert listed[: len(_COMMANDS)] == [*_COMMANDS]
    assert "Exit codes: 0 done, 1 the gate is breached, 2 an error, 130 interrupted." in out


@pytest.mark.parametrize("name", _COMMANDS)
def test_each_command_explains_itself(command: Command, name: str) -> None:
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: equipoise {name} ")
    found = app.get_command(click.Context(app), name)
    parts = found.commands.values() if isinstance(found, click.Group) else [found]
    assert all(
        "--json" in one.opts for part in parts for one in part.params if one.name == "as_json"
    )
    assert all("as_json" in [one.name for one in part.params] for part in parts)
    plain = out.replace("RUN...", "").replace("COMMAND [ARGS]...", "")
    assert "..." not in plain.split("Options:")[0]


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_summary_fits_the_list(name: str) -> None:
    found = app.get_command(click.Context(app), name)
    assert not found.get_short_help_str(200).endswith("...")
    assert len(found.get_short_help_str(200)) < 60


def test_version(command: Command) -> None:
    assert command("--version") == (0, f"equipoise, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["audti"],
            "no command 'audti'. There are: demo, new, plan, audit, report, compare, check, "
            "counterfactuals, augment, mitigate, metrics. Did you mean 'audit'? "
            "See 'equipoise --help'",
        ),
        (["audit"], "missing argument 'CONFIG'. See 'equipoise audit --help'"),
        (
            ["audit", "x", "--owt"],
            "no such option '--owt'. Did you mean one of: '--out', '--overwrite'? "
            "See 'equipoise audit --help'",
        ),
        (["compare"], "missing argument 'RUN...'. See 'equipoise compare --help'"),
        (
            ["check", "runs/nope"],
            "runs/nope: no run and no configuration. To do: name the folder of a run, such as "
            "runs/audit, or a configuration that exists",
        ),
        (
            ["audit", "no.yaml"],
            "no.yaml: no such file. To do: create one with 'equipoise new no.yaml'",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line(
    command: Command,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError("a.yaml: bad"), 2, "error: a.yaml: bad\n"),
        (DataError("no rows", file="a.csv"), 2, "error: a.csv: no rows.\n"),
        (RunError("taken"), 2, "error: taken\n"),
        (
            MissingExtraError("torch", "train"),
            2,
            "error: torch is not installed. To do: pip install 'equipoise[train]'.\n",
        ),
        (
            ConfigError("\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eflip\x00\r"),
            2,
            "error: red  flip\n",
        ),
        (
            MemoryError(),
            2,
            "error: not enough memory. To do: fewer models per audit, or a machine with more "
            "memory\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "x/y"),
            2,
            "error: x/y: the disk is full. To do: free space, or write elsewhere\n",
        ),
        (
            OSError(errno.EFBIG, "File too large", "x/y"),
            2,
            "error: x/y: the file became larger than this disk or process may write. To do: raise "
            "the limit of file sizes (ulimit -f), or write elsewhere\n",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "x/y"),
            2,
            "error: x/y: no permission. To do: change the permissions, or choose another place\n",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), 2, "error: x: No such file\n"),
        (OSError("odd"), 2, f"error: odd. {DEBUG}\n"),
        (ValueError("odd\nand long"), 2, f"error: unexpected ValueError: odd. {DEBUG}\n"),
        (ZeroDivisionError(), 2, f"error: unexpected ZeroDivisionError: no message. {DEBUG}\n"),
        (KeyboardInterrupt(), 130, "interrupted; nothing half-written is left\n"),
        (click.Abort(), 130, "stopped; nothing was written\n"),
        (SystemExit(143), 2, f"error: {EXITED} (SystemExit: 143). {DEBUG}\n"),
        (SystemExit("odd"), 2, f"error: {EXITED} (SystemExit: odd). {DEBUG}\n"),
    ],
)
def test_every_failure_is_one_message_and_a_code(
    command: Command,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    from equipoise import audits

    def fails(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(audits, "run", fails)
    before = sorted(project.iterdir())
    assert command("audit", "c.yaml", "--out", "run") == (code, "", message)
    assert sorted(project.iterdir()) == before


def test_the_traceback_is_there_when_asked_for(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise import audits

    def fails(*args: object, **kwargs: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(audits, "run", fails)
    monkeypatch.setenv("EQUIPOISE_DEBUG", "1")
    code, _, err = command("audit", "c.yaml")
    assert code == 2
    assert "Traceback (most recent call last)" in err
    assert err.endswith(f"error: unexpected ValueError: odd. {DEBUG}\n")


def environment() -> dict[str, str]:
    root = Path(__file__).resolve().parents[2]
    paths = (str(root / "src"), str(root / "tests"), os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.parametrize("module", ["equipoise", "equipoise.cli"])
def test_it_runs_as_a_module(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert done.stdout == f"equipoise, version {__version__}\n"


def test_a_closed_pipe_is_no_error_of_ours() -> None:
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
from cli.project import data

def run(config, **_):
    print("measuring", flush=True)
    time.sleep(60)

audits.load, audits.run = lambda config, base: data(), run
from equipoise.cli import main
main(["audit", "c.yaml", "--out", "runs/one"])
"""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, b"interrupted; nothing half-written is left\n"),
        (signal.SIGTERM, 143, b"interrupted; nothing half-written is left\n"),
    ],
)
def test_an_interrupted_audit_leaves_nothing(
    project: Path, number: signal.Signals, code: int, said: bytes
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"measuring\n"
        assert [path.suffix for path in (project / "runs").iterdir()] == [".partial"]
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, said)
    assert not (project / "runs").exists()


NOISY = """
import os
from equipoise.cli.terminal import keep_stdout, say_json

keep_stdout()
os.write(1, b"Received Ctrl-C, shutting down execution engine\\n")
say_json({"run": "one"})
"""


def test_what_a_library_writes_past_python_is_not_in_the_result() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOISY], capture_output=True, env=environment(), check=True
    )
    assert json.loads(done.stdout) == {"run": "one"}
    assert done.stderr == b"Received Ctrl-C, shutting down execution engine\n"
