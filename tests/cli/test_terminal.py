"""Nothing that came from data acts on a terminal; progress is for a terminal only."""

import io
import json
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.cli import terminal
from equipoise.cli.runs import show, show_all
from equipoise.cli.terminal import Steps, printable, say_json
from equipoise.core import AuditResult
from equipoise.report.concluding import conclusions_of
from report.synthetic import finding, group_values, manifest


@given(st.text() | st.text(alphabet="\x1b\x9b\x9d[]0;m\x07a\u202e\n"))
def test_no_control_character_is_left(text):
    printed = printable(text)
    allowed = {"\n", "\u200c", "\u200d"}
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert all(c in allowed or unicodedata.category(c) not in hidden for c in printed)
    assert printable(printed) == printed


def test_json_is_ascii_and_strict(capsys):
    say_json({"label": "é\x1b\u202e", "nan": float("nan"), "low": [float("-inf")], "yes": True})
    out = capsys.readouterr().out
    assert out.isascii()
    assert "\x1b" not in out
    assert json.loads(out) == {
        "label": "é\x1b\u202e",
        "nan": None,
        "low": ["-Infinity"],
        "yes": True,
    }


class Terminal(io.StringIO):
    def isatty(self):
        return True


def bar(monkeypatch, stream, wait, done):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "_WAIT", wait)
    with Steps() as steps:
        if steps._timer is not None and wait == 0:
            steps._timer.join()
        steps("measuring \x1b[bold]x", done, 10)
    return stream.getvalue()


def test_progress_is_shown_on_a_terminal_when_it_lasts(monkeypatch):
    assert "measuring [bold]x" in bar(monkeypatch, Terminal(), 0, 5)


def test_progress_is_silent_when_it_is_quick_or_off_a_terminal(
    monkeypatch,
):
    assert bar(monkeypatch, Terminal(), 60, 5) == ""
    assert bar(monkeypatch, io.StringIO(), 0, 5) == ""


def differences(n):
    """Return a run of one model that differs by n attributes of four values each."""
    findings = []
    for place in range(n):
        names = [f"value {k} of attribute {place}" for k in range(4)]
        values = group_values({(name,): (40 + 10 * k, 100) for k, name in enumerate(names)})
        findings.append(finding(groups=f"attribute {place}", by_group=values, compared_to=""))
    record = manifest(resolved={"audit": "predictions"})
    return AuditResult(tuple(findings), record, {}, conclusions_of(findings))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_each_conclusion_has_a_line(n, capsys):
    show(differences(n), Path("runs/many"))
    lines = capsys.readouterr().out.splitlines()
    bullets = [line for line in lines if line.startswith("  · ")]
    assert len(bullets) == n - 1
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("letters", [3, 30, 44, 60])
def test_no_line_is_wider_than_a_terminal(letters, capsys):
    n = 1_000_000
    counts = {(name * letters,): (k * n, n) for name, k in (("a", 0.2), ("b", 0.5), ("c", 1.0))}
    findings = (finding(groups="place", by_group=group_values(counts), n=3 * n),)
    record = manifest(resolved={"audit": "predictions"})
    show(AuditResult(findings, record, {}, conclusions_of(findings)), Path("runs/large"))
    lines = capsys.readouterr().out.splitlines()
    assert len({line.index(" n 1") for line in lines if "█" in line}) == 1
    assert sum("█" in line for line in lines) == 3
    assert max(map(len, lines)) <= 80


def test_more_conclusions_than_lines_are_counted_and_all_can_be_shown(capsys):
    result = differences(12)
    show(result, Path("runs/many"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 15
    assert "more: equipoise show runs/many --all" in next(
        line for line in reversed(lines) if line.startswith("  · ")
    )
    show_all(result, Path("runs/many"))
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  · ") for line in lines) == 11
