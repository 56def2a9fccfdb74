"""A training that is killed goes on, and ends in the same weights."""

import signal

import pytest

from alone import alone
from equipoise.core.errors import RunError
from equipoise.mitigate import Contrastive, TextDistillation
from mitigate.scenes import base, same, training, weights

KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from equipoise.mitigate import Contrastive, TextDistillation
from mitigate.scenes import base, training

torch.set_num_threads(1)

def kill(step, done, total):
    if step == "training" and done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

recipe = {recipe!r}
recipe.fit(base(), training(), Path(sys.argv[1]), seed=5, progress=kill)
"""
RECIPES = (
    TextDistillation(steps=6, learning_rate=3e-4, kept=16, look_every=1),
    Contrastive(epochs=3, learning_rate=1e-4, penalty=0.5),
)
SHORT = TextDistillation(steps=4, learning_rate=3e-4, kept=8, look_every=1)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_kill_and_resume_give_the_same_weights(recipe, tmp_path):
    done = alone(KILLED.format(recipe=recipe), tmp_path / "killed")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["killed.training"]
    seen = []
    recipe.fit(
        base(), training(), tmp_path / "killed", seed=5, progress=lambda *step: seen.append(step[1])
    )
    assert seen[0] == 3  # it went on, and did not begin anew
    recipe.fit(base(), training(), tmp_path / "whole", seed=5)
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))
    assert (tmp_path / "killed" / "mitigation.json").read_bytes() == (
        tmp_path / "whole" / "mitigation.json"
    ).read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"killed", "whole"}


def stopped(out):
    def stop(step, done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SHORT.fit(base(), training(images=False), out, progress=stop)


@pytest.mark.parametrize("place", [0.02, 0.5, 0.99])
def test_a_training_whose_state_is_damaged_starts_again(place, tmp_path, caplog):
    stopped(tmp_path / "made")
    state = tmp_path / "made.training" / "state.pt"
    content = bytearray(state.read_bytes())
    content[int(place * len(content))] ^= 1
    state.write_bytes(content)
    SHORT.fit(base(), training(images=False), tmp_path / "made")
    assert str(state) in caplog.text
    SHORT.fit(base(), training(images=False), tmp_path / "whole")
    assert same(weights(tmp_path / "made"), weights(tmp_path / "whole"))


def test_a_state_of_another_training_is_refused(tmp_path):
    stopped(tmp_path / "made")
    with pytest.raises(RunError, match="a training with other data, settings or libraries was"):
        SHORT.fit(base(), training(images=False), tmp_path / "made", seed=1)


def test_what_a_kill_left_behind_is_removed(tmp_path):
    recipe = TextDistillation(steps=1, kept=8)
    half, state = tmp_path / ".made.0123abcd.partial", tmp_path / "made.training"
    half.mkdir()
    (half / "config.json").write_text("{}")
    recipe.fit(base(), training(images=False), tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    # A kill between the renaming and the end leaves the state of a model that is whole.
    state.mkdir()
    (state / "state.pt").write_bytes(b"")
    recipe.fit(base(), training(images=False), tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_training_stops_where_the_validation_loss_no_longer_falls(tmp_path):
    # So high that every step makes it worse.
    recipe = TextDistillation(steps=50, learning_rate=1.0, kept=8, look_every=1, patience=2)
    recipe.fit(base(), training(images=False), tmp_path / "made")
    TextDistillation(steps=1, learning_rate=1e-30).fit(
        base(), training(images=False), tmp_path / "still"
    )
    assert same(weights(tmp_path / "made"), weights(tmp_path / "still"))  # those it began with
