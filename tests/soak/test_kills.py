"""Work that is killed or interrupted at random moments ends as if nobody had disturbed it."""

import signal

import pytest

from tools.soak.kills import (
    extraction,
    files,
    fine_tuning,
    generation,
    kill_and_resume,
)
from tools.soak.work import extract, stopped


def test_an_extraction_that_is_killed(tmp_path):
    row = kill_and_resume(extraction(tmp_path, pictures=700), tmp_path, kills=6, seed=4)
    assert row.failures == ()
    assert row.held >= 4


@pytest.mark.parametrize(("number", "kills"), [(signal.SIGKILL, 4), (signal.SIGINT, 3)])
def test_a_generation_that_is_stopped(number, kills, tmp_path):
    row = kill_and_resume(generation(), tmp_path, kills=kills, seed=number, number=number)
    assert row.failures == ()


def test_a_training_that_is_killed(tmp_path):
    assert kill_and_resume(fine_tuning(epochs=4), tmp_path, kills=3, seed=2).failures == ()


def test_remains_of_a_kill_are_detected(tmp_path):
    # The comparison has the power to fail: a store that a kill left is not a whole one.
    task = extraction(tmp_path, pictures=200)
    extract(lambda _: None, tmp_path / "whole", *task.arguments)
    code = stopped(extract, (tmp_path / "store", *task.arguments), target=32, delay=0)
    assert code == -signal.SIGKILL
    assert files(tmp_path / "store") != files(tmp_path / "whole")
