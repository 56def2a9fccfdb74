"""A training that is killed goes on, and ends in the same weights."""

import json
from dataclasses import replace
from itertools import chain

import pytest

from equipoise.core import RunError
from equipoise.mitigate import Contrastive
from mitigate.scenes import base, same, training, weights

SHORT = Contrastive(batch=12, learning_rate=3e-4)


def interrupt_training(out):
    def stop(step, done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SHORT.fit(base(), training(), out, progress=stop)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the weights of a training that nothing disturbs."""
    out = tmp_path_factory.mktemp("fitting") / "whole"
    SHORT.fit(base(), training(), out)
    return weights(out)


@pytest.mark.parametrize("place", [0.02, 0.5, 0.99])
def test_a_training_whose_state_is_damaged_starts_again(place, whole, tmp_path, caplog):
    interrupt_training(tmp_path / "made")
    state = tmp_path / "made.training" / "state.pt"
    content = bytearray(state.read_bytes())
    content[int(place * len(content))] ^= 1
    state.write_bytes(content)
    SHORT.fit(base(), training(), tmp_path / "made")
    assert str(state) in caplog.text
    assert same(weights(tmp_path / "made"), whole)


def test_a_state_of_another_training_is_refused(tmp_path):
    interrupt_training(tmp_path / "made")
    with pytest.raises(RunError, match="a training with other data, settings or libraries was"):
        SHORT.fit(base(), training(), tmp_path / "made", seed=1)


def test_what_a_kill_left_behind_is_removed(tmp_path):
    recipe = Contrastive(batch=48)
    half, state = tmp_path / ".made.0123abcd.partial", tmp_path / "made.training"
    half.mkdir()
    (half / "config.json").write_text("{}")
    recipe.fit(base(), training(), tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    # A kill between the renaming and the end leaves the state of a model that is whole.
    state.mkdir()
    (state / "state.pt").write_bytes(b"")
    recipe.fit(base(), training(), tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_training_stops_where_the_validation_loss_no_longer_falls(tmp_path):
    # So high that every step makes it worse.
    recipe = Contrastive(batch=12, epochs=12, learning_rate=1.0, patience=2)
    recipe.fit(base(), training(), tmp_path / "made")
    Contrastive(batch=48, learning_rate=1e-30).fit(base(), training(), tmp_path / "still")
    assert same(weights(tmp_path / "made"), weights(tmp_path / "still"))  # those it began with


def neutral(images, texts):
    """The images, each set with one neutral prompt of its subject, in turn."""
    prompts = {subject_texts.subject: subject_texts.neutral for subject_texts in texts}
    captions = images.caption.copy()
    for place, name in enumerate(sorted(set(images.set))):
        rows = images.set == name
        subject_prompts = prompts[images.subject[rows][0]]
        captions[rows] = subject_prompts[place % len(subject_prompts)]
    return replace(images, caption=captions)


def test_neutral_captions_name_the_subject_alone(tmp_path):
    training_data = training()
    by_hand = replace(
        training_data,
        images=neutral(training_data.images, training_data.texts),
        validation_images=neutral(training_data.validation_images, training_data.validation),
    )
    SHORT.fit(base(), by_hand, tmp_path / "by_hand")
    SHORT.model_copy(update={"captions": "neutral"}).fit(base(), training_data, tmp_path / "made")
    assert same(weights(tmp_path / "made"), weights(tmp_path / "by_hand"))
    SHORT.fit(base(), training_data, tmp_path / "given")
    assert not same(weights(tmp_path / "made"), weights(tmp_path / "given"))


class WatchedImages:
    """Images that note in which step of a training they are read."""

    def __init__(self, images):
        self.images, self.rows_by_step, self.step = images, {}, None

    def __len__(self):
        return len(self.images)

    def __getitem__(self, row):
        self.rows_by_step.setdefault(self.step, []).append(row)
        return self.images[row]

    def begin(self, step, done, total):
        self.step = done


def batches_of(out, **settings):
    """Return the set names of the training images, and the rows of each batch of two epochs."""
    data = replace(training(), validation=(), validation_images=None)
    images = WatchedImages(data.images.images)
    recipe = Contrastive(batch=20, epochs=2, learning_rate=1e-30, **settings)
    recipe.fit(base(), replace(data, images=replace(data.images, images=images)), out,
               progress=images.begin)  # fmt: skip
    batches = [rows for step, rows in images.rows_by_step.items() if step is not None]
    return data.images.set, batches


@pytest.mark.parametrize("batches", ["sets", "pairs"])
def test_an_epoch_takes_every_image_once_and_the_next_in_another_order(batches, tmp_path):
    sets, rows = batches_of(tmp_path / "made", batches=batches)
    half = len(rows) // 2
    first, second = ([*chain.from_iterable(part)] for part in (rows[:half], rows[half:]))
    assert sorted(first) == sorted(second) == [*range(len(sets))]
    assert first != second
    assert max(map(len, rows)) <= 20


def test_batches_of_pairs_cut_sets_and_batches_of_sets_do_not(tmp_path):
    for batches, whole in (("sets", True), ("pairs", False)):
        sets, rows = batches_of(tmp_path / batches, batches=batches)
        sizes = {name: (sets == name).sum() for name in sets}
        batch_sets = [[*sets[batch]] for batch in rows]
        complete = [names.count(name) == sizes[name] for names in batch_sets for name in {*names}]
        assert all(complete) == whole
    # Batches of pairs are full, but for the last one of an epoch.
    assert [len(batch) for batch in rows] == 2 * [20, 20, len(sets) - 40]


def test_batches_of_pairs_may_be_smaller_than_a_set(tmp_path):
    recipe = Contrastive(batch=8, batches="pairs", learning_rate=3e-4)
    recipe.fit(base(), training(), tmp_path / "made")
    record = json.loads((tmp_path / "made" / "mitigation.json").read_text())
    assert record["steps"] == 6
    # The loss of the validation subjects is watched over pairs, too.
    assert len(record["validation"]) > 1
