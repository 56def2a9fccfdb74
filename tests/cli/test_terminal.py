"""Nothing that came from data acts on a terminal; progress is for a terminal only."""

import io
import json
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from equipoise.cli import terminal
from equipoise.cli.terminal import Steps, printable, say_json


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
