"""An assessment as findings and tables, in the form in which every audit ends."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from equipoise.core.finding import Family, Finding, Verdict
from equipoise.mitigate.assessing import ALPHA, HALFWAY, MARGIN, Row
from equipoise.mitigate.crossfit import Assessment
from equipoise.mitigate.outcomes import named
from equipoise.mitigate.pairing import FEWEST

AUDIT = "mitigation"

_TEXTS = ("recipe", "role", "measure", "about")
_NUMBERS = (
    "before", "after", "difference", "low", "high", "p_value", "q_value", "floor", "share",
    "share_low", "share_high",
)  # fmt: skip
ROWS = pa.schema(
    [(name, pa.string()) for name in _TEXTS]
    + [("n", pa.int64())]
    + [(name, pa.float64()) for name in _NUMBERS]
    + [
        ("test", pa.string()),
        ("share_reason", pa.string()),
        ("lowered", pa.bool_()),
        ("reaches", pa.bool_()),
    ]
)
RECIPES = pa.schema(
    [(name, pa.string()) for name in ("recipe", "conclusion", "sentence", "model")]
    + [("transfers", pa.bool_()), ("seconds", pa.float64())]
)
SUBJECTS = pa.schema(
    [(name, pa.string()) for name in ("recipe", "measure", "about", "subject")]
    + [("fold", pa.int64())]
    + [(name, pa.float64()) for name in ("before", "after", "floor")]
)


def tables_of(assessment: Assessment) -> dict[str, pa.Table]:
    """Return the tables that the report draws on.

    Returns
    -------
    dict of str to pyarrow.Table
        `mitigation` (one row for each recipe and number), `mitigation_recipes` (what is to be said
        of each), `mitigation_subjects` (each withheld subject before and after).
    """
    rows = [
        asdict(row) | {"lowered": row.lowered, "reaches": row.reaches} for row in assessment.rows
    ]
    recipes = [
        asdict(one)
        | {
            "seconds": assessment.seconds[one.recipe],
            "model": assessment.models.get(one.recipe, ""),
        }
        for one in assessment.outcomes
    ]
    return {
        "mitigation": pa.Table.from_pylist(rows, schema=ROWS),
        "mitigation_recipes": pa.Table.from_pylist(recipes, schema=RECIPES),
        "mitigation_subjects": pa.Table.from_pylist([*_subjects(assessment)], schema=SUBJECTS),
    }


def _subjects(assessment: Assessment) -> Iterator[dict[str, Any]]:
    fold = {
        name: number for number, split in enumerate(assessment.splits) for name in split.withheld
    }
    for recipe, found in assessment.after.items():
        for (measure, about), values in found.bias.items():
            before = assessment.before.bias[measure, about]
            floor: Mapping[str, float] = (
                assessment.floor.bias[measure, about] if assessment.floor is not None else {}
            )
            for subject, value in sorted(values.items()):
                yield {
                    "recipe": recipe,
                    "measure": measure,
                    "about": about,
                    "subject": subject,
                    "fold": fold[subject],
                    "before": before[subject],
                    "after": value,
                    "floor": floor.get(subject, math.nan),
                }


def findings_of(assessment: Assessment) -> tuple[Finding, ...]:
    """Return one finding for each number: its change, without a verdict on the model."""
    said = {one.recipe: one for one in assessment.outcomes}
    return tuple(_finding(row, said[row.recipe].conclusion) for row in assessment.rows)


def _finding(row: Row, conclusion: str) -> Finding:
    unit = "subject" if row.role == "bias" else "query" if "recall" in row.measure else "image"
    return Finding(
        audit=AUDIT,
        model=row.recipe,
        metric=f"{row.measure}_change",
        subject="",
        groups=row.about,
        version="default",
        family=Family.LEAF if row.role == "bias" else Family.COMPOSITE,
        value=row.difference,
        ci_low=row.low,
        ci_high=row.high,
        level=0.95,
        chance=math.nan,
        chance_low=math.nan,
        chance_high=math.nan,
        excess=math.nan,
        p_value=row.p_value,
        q_value=row.q_value,
        threshold=math.nan,
        n=row.n,
        by_group=(),
        excluded=(),
        unit=unit,
        method=_method(row, unit),
        null=f"before and after are exchangeable for each {unit}; {row.test}",
        parameters=json.dumps(
            {"halfway": HALFWAY, "margin": MARGIN, "alpha": ALPHA, "before": row.before,
             "after": row.after, "floor": None if math.isnan(row.floor) else row.floor},
            sort_keys=True,
        ),
        direction=_direction(row),
        verdict=Verdict.NONE,
        reason=f"a change is no disparity of its own; said of this recipe: {conclusion}",
        citation="",
    )  # fmt: skip


def _method(row: Row, unit: str) -> str:
    if row.n < FEWEST:
        return f"no interval: n = {row.n}, and of fewer than {FEWEST} nothing can be shown"
    return f"Student's t, paired by {unit}"


def _direction(row: Row) -> str:
    if row.difference == 0:
        return "unchanged"
    went = "fell" if row.difference < 0 else "rose"
    of = "withheld subjects" if row.role == "bias" else row.about
    return f"{named(row.measure)} of {of} {went} from {row.before:.3g} to {row.after:.3g}"


def notes_of(assessment: Assessment) -> tuple[str, ...]:
    """Return what a reader must know."""
    withheld = sum(len(split.withheld) for split in assessment.splits)
    folds = len(assessment.splits)
    how = (
        f"{withheld} subjects were withheld while the recipes learned from the others"
        if folds == 1
        else f"each of {withheld} subjects was withheld once, in {folds} folds"
    )
    floor = (
        " The floor is a model without the bias: a trained model has small preferences of its own, "
        "so that 0 is out of reach."
        if assessment.floor is not None
        else " No model without the bias was given as a floor, so that half of a number is held "
        "against 0, which trained models do not reach."
    )
    tested = [row.n for row in assessment.rows if row.role == "bias"]
    few = min(tested, default=0)
    least = 2.0 ** (1 - few)
    unsure = (
        f"{few} subjects were withheld: the smallest p of a test over them is {least:g}, "
        "so that nothing can be shown. Withhold six or more."
    )
    return (
        *((unsure,) if tested and least > ALPHA else ()),
        f"Disparities are those of withheld subjects: {how}. Every recipe of this run is "
        f"shown.{floor}",
        "A recipe transfers where every disparity fell "
        f"(q < {ALPHA}, signs of the differences exchanged over subjects), by the estimate at "
        "least halfway to the floor, and accuracy and "
        f"each recall fell by {100 * MARGIN:.0f} points at most. To lower a disparity that is "
        "measured is not to remove it everywhere: audit the new model on data of your own.",
    )
