"""Training on mixed and noisy faces: accuracies in the form of the source's table, and faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.core import AuditResult
from equipoise.mitigate.augmentation.sentences import (
    ARMS,
    accuracies,
    conclusions,
    distances,
    in_short,
    unequal,
)
from equipoise.report.blocks import Block, Chart, Fold, Section, Table, Words
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.plots import Axis, intervals
from equipoise.report.summary import Statement, Summary
from equipoise.report.tables import distinct, rows
from equipoise.report.text import count, interval, listed, number, p_value, percent


def augmentation(result: AuditResult) -> Section | None:
    """Accuracy after each training, its distance from balanced training, and what faces tell."""
    found = rows(result, "augmentation")
    if not found:
        return None
    columns = ["Network", *(f"#{arm.capitalize()}" for arm in ARMS)]
    caption = (
        "Accuracy on the test images, by what was trained on, in the form of Mandal 2024, "
        "Table 10.1"
    )
    blocks: list[Block] = [
        Words((f"{_intro(result)} {_chance(found)}",), "note"),
        Words(tuple(conclusions(result)), "list"),
        _chart(found),
        Table.of(caption, columns, accuracies(result), source="augmentation"),
        Table.of(
            "Accuracy Difference from training on balanced images",
            ["Network", "Trained on", "#Δ", "#Over images", "#Over runs", "#%Δ", "#Over images"],
            distances(found),
            source="augmentation",
        ),
        Words((_DISTANCE,), "note"),
    ]
    blocks += _associations(rows(result, "augmentation_associations"))
    blocks += _images(result)
    return Section("augmentation", "Training on changed faces", tuple(blocks))


def _images(result: AuditResult) -> list[Block]:
    """Count the images of each set, and those without a face."""
    blocks: list[Block] = []
    given = rows(result, "augmentation_images")
    if given:
        cells = [(r["images"], r["class"], r["group"], count(r["count"])) for r in given]
        table = Table.of(
            "Images used", ["Images", "Label", "Group", "#Number"], cells,
            source="augmentation_images",
        )  # fmt: skip
        blocks.append(Fold("Images of each label and group", (table,)))
    missing = rows(result, "faces_missing")
    if missing:
        cells = [(r["images"], r["group"], count(r["without"]), count(r["of"])) for r in missing]
        table = Table.of(
            "Images without a face, which stay as they are",
            ["Images", "Group", "#Without", "#Of"], cells, source="faces_missing",
        )  # fmt: skip
        blocks.append(Fold("Images in which no face was found", (table,)))
    return blocks


def _intro(result: AuditResult) -> str:
    """Say what was done, and claim that groups are as frequent with each answer only if so."""
    asked, trained = unequal(result, "test"), unequal(result, "balanced")
    parts = [
        "Every network is trained anew on each set of images, several times, and asked the same "
        + ("test images." if asked or not rows(result, "augmentation_images") else _EVEN)
    ]
    if asked:
        parts.append(
            f"In these, groups are not equally frequent with each answer ({asked}), so that an "
            "accuracy counts the more frequent more."
        )
    parts.append("Training on balanced images is what the others are held against.")
    if trained:
        parts.append(
            "In the images given as balanced, groups are not equally frequent with each answer "
            f"({trained})."
        )
    parts.append(
        "Intervals are over training runs and test images, where they do not say otherwise."
    )
    return " ".join(parts)


_EVEN = "test images, in which each group is as frequent with each answer."

_DISTANCE = (
    "Δ is how far an accuracy is from that after balanced images, without a sign; %Δ is its share "
    "of the latter. Intervals over images are of these very networks on other test images; those "
    "over runs are of training them again."
)


def _chance(found: Sequence[Mapping[str, Any]]) -> str:
    """Say what guessing comes to, and which trainings are not shown to do better."""
    chance = found[0]["chance"]
    text = f"Always naming the most frequent class is right on {percent(chance)}."
    lost = [row for row in found if not row["low"] > chance]
    taught = {row["network"] for row in found if row["low"] > chance}
    untaught = [one for one in distinct(found, "network") if one not in taught]
    if untaught:
        text += (
            f" Not shown to do better after any training: {listed(untaught, 12)}. Where no "
            "difference was shown there, nothing follows from it."
        )
    others = [f"{r['network']} ({r['arm']})" for r in lost if r["network"] in taught]
    if others:
        text += f" Not shown to do better: {listed(others, 12)}."
    return text


def _chart(found: Sequence[Mapping[str, Any]]) -> Chart:
    data = [
        {
            "label": row["network"],
            "series": row["arm"],
            "value": row["accuracy"],
            "low": row["low"],
            "high": row["high"],
            "tip": f"{row['network']}, {row['arm']}: {number(row['accuracy'])} "
            f"{interval(row['low'], row['high'])}",
        }
        for row in found
    ]
    label = "Accuracy with its interval for each network and each set of training images."
    axis = Axis("accuracy", percent=True, domain=(0.0, 1.0))
    return intervals(data, label, axis, title="Accuracy on the test images", series=ARMS)


def _associations(found: Sequence[Mapping[str, Any]]) -> list[Block]:
    if not found:
        return []
    cells = [
        (
            row["network"], row["arm"], row["class"], row["faces"], number(row["value"]),
            interval(row["low"], row["high"]), interval(row["chance_low"], row["chance_high"]),
            p_value(row["p_value"]), row["towards"],
        )
        for row in found
    ]  # fmt: skip
    columns = ["Network", "Trained on", "Class", "Faces", "#Association", "#Interval",
               "#By chance", "#p", "Closer to"]  # fmt: skip
    note = (
        "Image-image association of the features: how much closer images of a class are to those "
        "of one group than to those of the other, whose faces are whole; their own faces are whole "
        "or covered. What classes with covered faces have in common comes from the cover, which "
        "may look more like one group; what tells them apart does not come from the face. First "
        "training run; described, without a verdict."
    )
    table = Table.of("Associations", columns, cells, source="augmentation_associations")
    return [Words((note,), "note"), Fold("Associations of classes with groups", (table,))]


def summary(result: AuditResult) -> Summary:
    """Return what helped each network."""
    statements = tuple(Statement(None, text) for text in in_short(result))
    return Summary(statements, _chart(rows(result, "augmentation")))


PAGE = replace(
    COMPARISON, noun="Training on changed faces", sections=(augmentation,), summary=summary
)
