"""The audit of text-to-image models in its three steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.drawing import most_tests, resampling_of, tests_by_model
from equipoise.audits.engines.associations.results import Note, Result, Row
from equipoise.audits.findings import Draft
from equipoise.audits.kinds import Measured, Progress, estimated_seconds, told
from equipoise.audits.text_to_image import loading
from equipoise.audits.text_to_image.associating import associations
from equipoise.audits.text_to_image.batches import IMAGE, PLANNED
from equipoise.audits.text_to_image.designs import ALL, Design, designs
from equipoise.audits.text_to_image.loading import TextToImageData
from equipoise.audits.text_to_image.sharing import Asked, questions, shares
from equipoise.audits.text_to_image.tables import tables_of

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config import Config

# Seconds of a number in a space, and of the shares of a target, with 1000 draws each: rough
# guides, from the example.
_SECONDS_PER_SCORE, _SECONDS_PER_SHARE = 0.02, 0.03


def load(config: Config, *, base: Path) -> TextToImageData:
    """Read the images, what models say of them, and shares from outside, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: Config, data: TextToImageData, progress: Progress | None) -> Measured:
    """Measure associations in the space of every encoder, and whom the images show."""
    every, asked = [*designs(config, data)], [*questions(config, data)]
    tests = _tests(config, every, asked)
    pieces: list[Result] = []
    both: list[Design | Asked] = [*every, *asked]
    for one in told(both, progress, "measuring"):
        drawn = resampling_of(config, tests[one.generator])
        pieces += associations(one, drawn) if isinstance(one, Design) else shares(one, drawn)
    drafts = tuple(piece for piece in pieces if isinstance(piece, Draft))
    rows = (piece for piece in pieces if isinstance(piece, Row))
    notes = [*_notes(config, data), *(piece.text for piece in pieces if isinstance(piece, Note))]
    return Measured(drafts, tables_of(config, data, rows, drafts), tuple(dict.fromkeys(notes)))


def _tests(config: Config, every: Sequence[Design], asked: Sequence[Asked]) -> Counter[str]:
    targets = len(config.prompts.target_names)
    leaning = ((one.generator, one.tested * len(config.pairs) * targets) for one in every)
    shown = ((one.generator, (1 + (one.share.outside is not None)) * targets) for one in asked)
    return tests_by_model((*leaning, *shown))


@dataclass(frozen=True)
class Plan:
    """What an audit of text-to-image models would do.

    Attributes
    ----------
    images : list of dict
        Per generator and strength of guidance: images asked for, and those that are there;
        "to be made" where a model makes them (the runs say how many its store has).
    prompts : list of dict
        Per set of attributes, and for all targets: prompts.
    shares : list of dict
        Per question: labelled images of the class with fewest, None without.
    tests : int
        How many there are to correct for, of the generator with the most.
    seconds : float
        A rough guide.
    """

    images: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    shares: list[dict[str, Any]]
    tests: int
    seconds: float


def plan(config: Config, data: TextToImageData) -> Plan:
    """Say what the audit would do."""
    every, asked = [*designs(config, data)], [*questions(config, data)]
    targets = len(config.prompts.target_names)
    attributes = sum(map(len, config.prompts.attribute_texts.values()))
    draws = max(config.resampling.replicates, config.resampling.permutations or 0) / 1000
    scores = 2 * len(every) * len(config.pairs) * (targets + attributes)
    seconds = draws * (scores * _SECONDS_PER_SCORE + len(asked) * targets * _SECONDS_PER_SHARE)
    return Plan(
        images=[*_planned(config, data)],
        prompts=[
            *({"set": n, "prompts": len(t)} for n, t in config.prompts.attribute_texts.items()),
            {"set": "targets", "prompts": targets},
        ],
        shares=[
            {
                "of": one.share.of, "generator": one.generator, "guidance": one.guidance,
                "labelled_of_the_rarest": None
                if one.confusion is None
                else int(one.confusion.labelled.min()),
            }
            for one in asked
        ],
        tests=most_tests(_tests(config, every, asked)),
        seconds=estimated_seconds(seconds),
    )  # fmt: skip


def _planned(config: Config, data: TextToImageData) -> Iterator[dict[str, Any]]:
    for name, made in data.made.items():
        given = config.generators[name].images
        marks = getattr(getattr(given and given.table, "schema", None), "metadata", None) or {}
        for guidance in made.guidances:
            here = slice(None) if guidance is None else made.guidance == guidance
            states = made.state[here]
            yield {
                "generator": name, "guidance": guidance, "asked": len(states),
                "there": "to be made" if PLANNED in marks else int((states == IMAGE).sum()),
            }  # fmt: skip


def _notes(config: Config, data: TextToImageData) -> Iterator[str]:
    yield (
        "Groups are as prompts name them and classifiers perceive them, not identities. The "
        "findings say nothing about groups that no prompt names."
    )
    if config.pairs:
        yield (
            "Prompts are as declared: intervals are over images and seeds, and say nothing of "
            "prompts that were not asked."
            if config.associations is None or config.associations.clusters == "seed"
            else "Intervals are over prompts: images of one prompt are resampled together."
        )
    if len(config.encoders) > 1:
        yield (
            f"“{ALL}” averages the cosines of {', '.join(config.encoders)}: its scores are the "
            "means of theirs."
        )
    for name, made in data.made.items():
        if not made.seeded:
            yield f"{name}: seeds are not known, so every image counts as independent."
        for state in ("refused", "failed"):
            count = int((made.state == state).sum())
            if count:
                yield (
                    f"{name}: {count} of {len(made.state)} images were {state}; they are in no "
                    "share and no score."
                )
    for (model, generator), found in data.vectors.items():
        lost = int(((data.made[generator].state == IMAGE) & ~found.usable).sum())
        if lost:
            yield f"{model}: {lost} images of {generator} have no usable vector."
