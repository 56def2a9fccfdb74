"""Inspect: scores by group with intervals and a verdict, and a task for a table of images.

Inspect finds the names by the entry point: ``inspect eval equipoise/label_images -T table=t.csv``.
"""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
from click import ClickException

from equipoise.core import DataError, Estimate, InputError
from equipoise.core.errors import MissingExtraError
from equipoise.data import read_table
from equipoise.integrations.verdicts import verdict_of
from equipoise.metrics import accuracy, mean_error

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText
    from inspect_ai.scorer import (
        Metric,
        SampleScore,
        Score,
        Scorer,
        Target,
        choice,
        metric,
        scorer,
        value_to_float,
    )
    from inspect_ai.solver import TaskState, multiple_choice
except ModuleNotFoundError as error:
    raise MissingExtraError("inspect_ai", "inspect") from error

GROUP = "group"
"""Key of a score's metadata that names the group of its sample."""


@metric  # type: ignore[untyped-decorator]
def group_difference(groups: str = "") -> Metric:
    """Compare the mean score of groups.

    The values are the mean of each group, the difference of the highest and the lowest, the ends
    of their intervals ("low", "high"), the p-value, and the verdict as a name with the value 1.

    Parameters
    ----------
    groups : str
        Key of the samples' metadata; the group that `by_group` records unless given.
    """
    to_number = value_to_float()

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        numbers = np.array([to_number(item.score.value) for item in scores], dtype=float)
        names = [
            (item.sample_metadata or {}).get(groups)
            if groups
            else (item.score.metadata or {}).get(GROUP)
            for item in scores
        ]
        if not any(names):
            raise InputError(
                f"no sample has a group{f' under {groups!r} of its metadata' if groups else ''}. "
                "To do: name the key, as in group_difference('gender')"
            )
        return _values(_difference(numbers, names))

    return compute


def _difference(numbers: np.ndarray[Any, Any], names: list[Any]) -> Estimate:
    """Return how groups differ: in accuracy where all scores are 0 or 1, else in the mean."""
    texts = [None if name is None else str(name) for name in names]
    if np.isin(numbers, (0.0, 1.0)).all():
        return accuracy.difference(np.ones(len(numbers), int), numbers.astype(int), texts)
    return mean_error.difference(np.zeros(len(numbers)), numbers, texts)


def _values(difference: Estimate) -> dict[str, float]:
    """Return the numbers of an estimate by name; those that are missing are left out."""
    ends = difference.interval()
    numbers = {
        "difference": difference.value,
        "difference low": ends.low,
        "difference high": ends.high,
        "p-value": np.nan if difference.p_value is None else difference.p_value,
    }
    for _, _, group, value, low, high, _ in difference.by_group.rows():
        numbers |= {group: value, f"{group} low": low, f"{group} high": high}
    verdict, _ = verdict_of(difference)
    known = {name: float(number) for name, number in numbers.items() if np.isfinite(number)}
    return {**known, f"verdict: {verdict}": 1.0}


@scorer(metrics=[group_difference()])  # type: ignore[untyped-decorator]
def by_group(grader: Scorer | None = None, groups: str = "gender") -> Scorer:
    """Score with another scorer, and compare the scores of groups.

    Parameters
    ----------
    grader : Scorer, optional
        The scorer whose scores are compared; `choice()` unless given.
    groups : str
        Key of the samples' metadata that names the group.
    """
    grade = grader or choice()

    async def score(state: TaskState, target: Target) -> Score | None:
        graded = await grade(state, target)
        if graded is not None:
            group = {GROUP: state.metadata.get(groups)}
            graded.metadata = {**(graded.metadata or {}), **group}
        return graded

    return score


@task  # type: ignore[untyped-decorator]
def label_images(
    table: str,
    question: str = "Which label fits the image?",
    target: str = "label",
    groups: str = "gender",
    image: str = "",
    id: str = "id",  # noqa: A002 - the name of the key
) -> Task:
    """Ask a model for the label of each row of a table, and compare groups.

    Parameters
    ----------
    table : str
        A table with a row for each image.
    question : str
    target : str
        Column of true labels, whose values are the options.
    groups : str
        Column of groups.
    image : str
        Column of the images' files, which are relative to the table; questions have no image
        unless given.
    id : str
        Column that names the row.
    """
    columns = {"id": id, "target": target, "groups": groups, **({"image": image} if image else {})}
    try:
        texts = read_table(table, texts=[*columns.values()]).texts
    except DataError as error:
        options = " ".join(f"-T {name}={column}" for name, column in columns.items())
        # Inspect's command line is one of click, which prints this error without a traceback.
        raise ClickException(f"{error} The columns are named by options: {options}") from error
    labels = sorted(texts[target].drop_nulls().unique())
    if not 1 < len(labels) <= len(ascii_uppercase):
        problem = f"{target} has {len(labels)} labels; expected 2 to {len(ascii_uppercase)}"
        raise InputError(f"{table}: {problem}")
    folder = Path(table).parent
    samples = [
        Sample(
            id=texts[id][row],
            input=_question(question, folder / texts[image][row] if image else None),
            choices=labels,
            target=ascii_uppercase[labels.index(label)],
            metadata={groups: texts[groups][row], target: label},
        )
        for row, label in enumerate(texts[target])
        if label is not None
    ]
    return Task(
        MemoryDataset(samples, name=Path(table).stem),
        solver=multiple_choice(),
        scorer=by_group(groups=groups),
    )


def _question(question: str, image: Path | None) -> str | list[ChatMessageUser]:
    if image is None:
        return question
    parts = [ContentText(text=question), ContentImage(image=str(image))]
    return [ChatMessageUser(content=parts)]
