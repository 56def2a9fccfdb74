"""Pages of a mitigation, and of training on mixed and noisy faces."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.mitigate.assessing import HALFWAY, MARGIN, named
from equipoise.mitigate.measuring import ACCURACY
from equipoise.report.blocks import Block, Chart, Fold, Grid, Section, Table, Words
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.page import Page
from equipoise.report.plots import Axis, intervals, scatter
from equipoise.report.summary import Statement, Summary
from equipoise.report.tables import Row, distinct, has, panels, rows
from equipoise.report.text import count, interval, listed, number, p_value, percent

_CONCLUSIONS = {
    "transfers": "{} transfers",
    "price not measured": "The price of {} wasn't measured",
    "transfers in part": "{} transfers in part",
    "cannot be told": "Whether {} transfers is unknown",
    "costs too much": "{} costs too much",
    "does not transfer": "{} does not transfer",
}


def by_conclusion(recipes: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return rows of `mitigation_recipes`, recipes that transfer first."""
    order = [*_CONCLUSIONS]
    return sorted(recipes, key=lambda row: order.index(row["conclusion"]))


def conclusion(row: Mapping[str, str]) -> str:
    """Return the conclusion about a recipe, a row of `mitigation_recipes`, in a sentence."""
    return f"{_CONCLUSIONS[row['conclusion']].format(row['recipe'])}: {row['sentence']}."


def _title(row: Row) -> str:
    name = named(row["measure"])
    return name[0].upper() + name[1:]


def price(result: AuditResult) -> Section | None:
    """Show how far each disparity fell, over the loss of accuracy and recall."""
    changes = rows(result, "mitigation")
    if not changes:
        return None
    note = (
        "Across: the share by which a disparity of withheld subjects fell; 1 is the level of a "
        "model without the bias if one was given, else 0. Up: change in zero-shot accuracy, in "
        "points. Dashed lines: halfway, and two points lost. A recipe that transfers lies to the "
        "right of the first and above the second. Lines: 95 % intervals over subjects and images. "
        "A disparity that isn't clearly above that level before has no mark."
    )
    plots = _plots(changes)
    blocks: list[Block] = [Words((note,), "note"), Grid(plots)] if plots else []
    blocks += [
        _table(changes, "bias", "Disparities of withheld subjects, before and after"),
        _table(changes, "utility", "Accuracy and recall, before and after"),
    ]
    return Section("price", "Change in disparities and its price", tuple(blocks))


def _plots(changes: Sequence[Row]) -> tuple[Chart, ...]:
    recipes = distinct(changes, "recipe")
    accuracy = {row["recipe"]: row for row in changes if row["measure"] == ACCURACY}
    biases = [row for row in changes if row["role"] == "bias" and row["recipe"] in accuracy]
    plots = []
    for (_, about), panel in panels(biases, "measure", "about").items():
        marks = [_mark(row, accuracy[row["recipe"]]) for row in panel]
        marks = [mark for mark in marks if not math.isnan(mark["x"])]
        if marks:
            title = f"{_title(panel[0])}, {about}"
            label = f"How far recipes lowered {title} of withheld subjects, over lost accuracy."
            axes = Axis("share of the way"), Axis("change in accuracy (points)")
            rules = (("x", HALFWAY), ("y", -100 * MARGIN))
            plots.append(scatter(marks, label, *axes, title=title, series=recipes, rules=rules))
    return tuple(plots)


def _mark(row: Row, accuracy: Row) -> dict[str, Any]:
    share = [row["share"], row["share_low"], row["share_high"]]
    if math.isnan(share[0]) and math.isnan(row["floor"]) and row["before"] > 0:
        share = [-row[name] / row["before"] for name in ("difference", "high", "low")]
    points = [100.0 * accuracy[name] for name in ("difference", "low", "high")]
    return {
        "series": row["recipe"],
        **dict(zip(("x", "x_low", "x_high", "y", "y_low", "y_high"), share + points, strict=True)),
        "tip": f"{row['recipe']}: {number(row['before'])} to {number(row['after'])}, "
        f"{number(share[0])} of the way {interval(*share[1:])}; accuracy {number(points[0])} "
        "points",
    }


def _table(changes: Sequence[Row], role: str, caption: str) -> Table:
    bias = role == "bias"
    cells = [
        (
            row["recipe"], _title(row), row["about"],
            *(number(row[name]) for name in ("before", "after", "difference")),
            interval(row["low"], row["high"]), p_value(row["p_value"]), p_value(row["q_value"]),
            number(row["floor"]),
            *((number(row["share"]), interval(row["share_low"], row["share_high"]))
              if bias else ()),
            count(row["n"]),
        )
        for row in changes
        if row["role"] == role
    ]  # fmt: skip
    columns = [
        "Recipe", "Measure", "Over" if bias else "On", "#Before", "#After", "#Difference",
        "#Interval", "#p", "#q", "#Floor",
        *(("#Of the way", "#Its interval", "#Subjects") if bias else ("#n",)),
    ]  # fmt: skip
    return Table.of(caption, columns, cells, source="mitigation")


def subjects(result: AuditResult) -> Section | None:
    """Show each withheld subject before and after every recipe."""
    every = rows(result, "mitigation_subjects")
    if not every:
        return None
    plots = []
    for (_, about), panel in panels(every, "measure", "about").items():
        title = f"{_title(panel[0])}, {about}"
        marks = [
            {
                "series": row["recipe"], "x": row["before"], "y": row["after"],
                "tip": f"{row['subject']}, {row['recipe']}: {number(row['before'])} to "
                f"{number(row['after'])}",
            }
            for row in panel
        ]  # fmt: skip
        end = 1.05 * max(max(row["before"], row["after"]) for row in panel)
        label = f"{title} of each withheld subject after a recipe, over before."
        axes = Axis("before", domain=(0.0, end)), Axis("after", domain=(0.0, end))
        series = distinct(panel, "recipe")
        plots.append(scatter(marks, label, *axes, title=title, series=series, rules=(("xy", end),)))
    note = (
        "A mark for each withheld subject and recipe. Below the line the disparity fell; above it, "
        "it rose."
    )
    cells = [
        (
            row["subject"], row["recipe"], _title(row), row["about"],
            *(number(row[name]) for name in ("before", "after", "floor")), count(row["fold"] + 1),
        )
        for row in every
    ]  # fmt: skip
    columns = ["Subject", "Recipe", "Measure", "Over", "#Before", "#After", "#Floor", "#Fold"]
    table = Table.of("Withheld subjects", columns, cells, source="mitigation_subjects")
    blocks = (Words((note,), "note"), Grid(tuple(plots)), table)
    return Section("subjects", "Withheld subjects before and after", blocks)


def _summary(result: AuditResult) -> Summary:
    recipes = by_conclusion(rows(result, "mitigation_recipes"))
    charts = _plots(rows(result, "mitigation"))
    statements = tuple(Statement(None, conclusion(row)) for row in recipes)
    return Summary(statements, charts[0] if charts else None)


PAGE = Page(
    subjects="recipes",
    sections=(price, subjects),
    summary=_summary,
    noun="Mitigation",
    judged=False,
)

ARMS = {
    "biased": "biased images",
    "partial mixing": "partial mixing",
    "uniform noise": "uniform noise",
    "balanced": "balanced images",
}
"""Columns of the table, as in Table 10.1 of Mandal 2024, and their names in a sentence."""

_SHOWN = 8
_DISTANCE = (
    "Δ is how far an accuracy is from that after balanced images, without a sign; %Δ is its share "
    "of the latter. Intervals over images are of these very networks on other test images; those "
    "over runs are of training them again."
)
_ASSOCIATION = (
    "Image-image association of the features: how much closer images of a class are to those "
    "of one group than to those of the other, whose faces are whole; their own faces are whole "
    "or covered. What classes with covered faces have in common comes from the cover, which "
    "may look more like one group; what tells them apart does not come from the face. First "
    "training run; described, without a verdict."
)


def accuracies(result: AuditResult) -> list[tuple[str, ...]]:
    """Return a row for each network: its name, and its accuracy after each training."""
    networks = panels(rows(result, "augmentation"), "network").items()
    return [
        (name, *(f"{number(row['accuracy'])} {_ends(row)}" for row in panel))
        for (name,), panel in networks
    ]


def _ends(row: Row, name: str = "", scale: float = 1, digits: int = 3) -> str:
    return interval(scale * row[f"{name}low"], scale * row[f"{name}high"], digits=digits)


def augmentation(result: AuditResult) -> Section | None:
    """Show accuracy after each training, its distance from balanced training, and associations."""
    trained = rows(result, "augmentation")
    if not trained:
        return None
    distances = [
        (
            row["network"], row["arm"], number(row["difference"]), _ends(row, "difference_"),
            interval(row["runs_low"], row["runs_high"]),
            f"{number(row['percent_difference'], 1)} %", _ends(row, "percent_", digits=1),
        )
        for row in trained
        if has(row["difference"])
    ]  # fmt: skip
    blocks: list[Block] = [
        Words((f"{_intro(result)} {_chance(trained)}",), "note"),
        Words(tuple(conclusions(result)), "list"),
        _chart(trained),
        Table.of(
            "Accuracy on the test images, by what was trained on, in the form of Mandal 2024, "
            "Table 10.1",
            ["Network", *(f"#{arm.capitalize()}" for arm in ARMS)],
            accuracies(result),
            source="augmentation",
        ),
        Table.of(
            "Accuracy Difference from training on balanced images",
            ["Network", "Trained on", "#Δ", "#Over images", "#Over runs", "#%Δ", "#Over images"],
            distances,
            source="augmentation",
        ),
        Words((_DISTANCE,), "note"),
    ]
    associations = [
        (
            row["network"], row["arm"], row["class"], row["faces"], number(row["value"]),
            _ends(row), _ends(row, "chance_"), p_value(row["p_value"]), row["towards"],
        )
        for row in rows(result, "augmentation_associations")
    ]  # fmt: skip
    blocks += [Words((_ASSOCIATION,), "note")] if associations else []
    images = [
        (row["images"], row["class"], row["group"], count(row["count"]))
        for row in rows(result, "augmentation_images")
    ]
    missing = [
        (row["images"], row["group"], count(row["without"]), count(row["of"]))
        for row in rows(result, "faces_missing")
    ]
    for title, caption, columns, cells, source in (
        ("Associations of classes with groups", "Associations",
         ["Network", "Trained on", "Class", "Faces", "#Association", "#Interval", "#By chance",
          "#p", "Closer to"], associations, "augmentation_associations"),
        ("Images of each label and group", "Images used",
         ["Images", "Label", "Group", "#Number"], images, "augmentation_images"),
        ("Images in which no face was found", "Images without a face, which stay as they are",
         ["Images", "Group", "#Without", "#Of"], missing, "faces_missing"),
    ):  # fmt: skip
        if cells:
            blocks.append(Fold(title, (Table.of(caption, columns, cells, source=source),)))
    return Section("augmentation", "Training on changed faces", tuple(blocks))


def _intro(result: AuditResult) -> str:
    """Say how networks were trained, and where groups are not as frequent with each label."""
    parts = [
        "Every network is trained anew on each set of images, several times, and tested on the "
        "same images. Training on balanced images is the reference."
    ]
    for images, what in (("test", "test images"), ("balanced", "images given as balanced")):
        if unequal := _unequal(result, images):
            parts.append(
                f"In the {what}, groups are not equally frequent with each label ({unequal})."
            )
    parts.append(
        "Intervals are over training runs and test images, where they do not say otherwise."
    )
    return " ".join(parts)


def _unequal(result: AuditResult, images: str) -> str:
    """Return the counts of a set by label and group; empty where groups are equally frequent."""
    own = [row for row in rows(result, "augmentation_images") if row["images"] == images]
    labels = panels(own, "class")
    if all(len({row["count"] for row in panel}) == 1 for panel in labels.values()):
        return ""
    texts = [
        f"{name}: " + ", ".join(f"{row['group']} {count(row['count'])}" for row in panel)
        for (name,), panel in labels.items()
    ]
    more = [f"{len(texts) - _SHOWN} more in the table below"] if len(texts) > _SHOWN else []
    return "; ".join([*texts[:_SHOWN], *more])


def _chance(trained: Sequence[Row]) -> str:
    """Say how often guessing is right, and which trainings are not shown to do better."""
    chance = trained[0]["chance"]
    text = f"Always naming the most frequent class is right on {percent(chance)}."
    taught = {row["network"] for row in trained if row["low"] > chance}
    untaught = [name for name in distinct(trained, "network") if name not in taught]
    if untaught:
        text += (
            f" Not shown to do better after any training: {listed(untaught, 12)}. Where no "
            "difference was shown there, nothing follows from it."
        )
    others = [
        f"{row['network']} ({row['arm']})"
        for row in trained
        if row["network"] in taught and not row["low"] > chance
    ]
    return f"{text} Not shown to do better: {listed(others, 12)}." if others else text


def _chart(trained: Sequence[Row]) -> Chart:
    data = [
        {
            "label": row["network"],
            "series": row["arm"],
            "value": row["accuracy"],
            "low": row["low"],
            "high": row["high"],
            "tip": f"{row['network']}, {row['arm']}: {number(row['accuracy'])} {_ends(row)}",
        }
        for row in trained
    ]
    label = "Accuracy with its interval for each network and each set of training images."
    axis = Axis("accuracy", percent=True, domain=(0.0, 1.0))
    return intervals(data, label, axis, title="Accuracy on the test images", series=[*ARMS])


def in_short(result: AuditResult) -> list[str]:
    """Say for each network, in a sentence, which trainings helped, with the gains.

    Trainings without a verdict come last, together, with the reason and no numbers.
    """
    effects: dict[str, list[str]] = {}
    unjudged: dict[tuple[str, str], list[str]] = {}
    for network, arm, finding in _judged(result):
        own = effects.setdefault(network, [])
        if finding.verdict == Verdict.NONE:
            unjudged.setdefault((network, finding.reason), []).append(ARMS[arm])
        else:
            own.append(f"{_effect(arm, finding)}, {_gain(finding)}")
    for (network, reason), arms in unjudged.items():
        effects[network].append(f"no verdict for {listed(arms)} ({reason})")
    held = "right answers, held against training on the biased images as they are"
    return [f"{network}, {held}: {'; '.join(parts)}." for network, parts in effects.items()]


def conclusions(result: AuditResult) -> list[str]:
    """Say for each network and training whether it helped, by how much, and how far it came."""
    trained = {(row["network"], row["arm"]): row for row in rows(result, "augmentation")}
    texts = []
    for network, arm, finding in _judged(result):
        row, before = trained[network, arm], trained[network, "biased"]
        text = (
            f"{network}: {_effect(arm, finding)}. Right on {_share(row)} of the test images, on "
            f"{_share(before)} after the biased ones as they are: {_gain(finding)}, q\u00a0"
            f"{p_value(finding.q_value)}."
        )
        if arm != "balanced":
            text += f" {_short_of(row, trained[network, 'balanced'])}"
        if row["runs"] == 1:
            text += " Of one training run, which says nothing of training again."
        texts.append(text)
    return texts


def _judged(result: AuditResult) -> Iterator[tuple[str, str, Finding]]:
    for finding in result.findings:
        known = json.loads(finding.parameters)
        if "arm" in known:
            yield known["network"], known["arm"], finding


def _effect(arm: str, finding: Finding) -> str:
    if finding.verdict == Verdict.NONE:
        return f"no verdict for {ARMS[arm]} ({finding.reason})"
    effect = "was not shown to help or to harm"
    if finding.verdict == Verdict.DISPARITY:
        effect = "helped" if finding.value > 0 else "did harm"
    elif finding.verdict == Verdict.BELOW_THRESHOLD:
        effect = "made no difference that matters"
    return f"{ARMS[arm]} {effect}"


def _gain(finding: Finding) -> str:
    """Return the gain in percentage points over the biased images, with its interval."""
    ends = interval(100 * finding.ci_low, 100 * finding.ci_high, digits=1)
    sign = "+" if finding.value > 0 else ""
    return f"{sign}{number(100 * finding.value, 1)} points {ends}"


def _share(row: Row) -> str:
    return f"{percent(row['accuracy'])} {_ends(row, scale=100, digits=1)}"


def _short_of(row: Row, balanced: Row) -> str:
    """Say how far a training stays behind the balanced images, by the wider of its intervals."""
    known = [name for name in ("difference", "runs") if has(row[f"{name}_low"])]
    low = min(row[f"{name}_low"] for name in known)
    high = max(row[f"{name}_high"] for name in known)
    ends = interval(100 * low, 100 * high, digits=1)
    apart = f"{number(100 * row['difference'], 1)} points {ends}"
    if low <= 0:
        return f"Not told apart from balanced images, with {apart} between them."
    side = "short of" if row["accuracy"] < balanced["accuracy"] else "beyond"
    return f"That is {apart} {side} balanced images."


def _augmentation_summary(result: AuditResult) -> Summary:
    statements = tuple(Statement(None, text) for text in in_short(result))
    return Summary(statements, _chart(rows(result, "augmentation")))


AUGMENTATION = replace(
    COMPARISON,
    noun="Training on changed faces",
    sections=(augmentation,),
    summary=_augmentation_summary,
)
