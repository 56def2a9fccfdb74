"""An assessment as findings and tables, in the form of every audit's result."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import pyarrow as pa

from equipoise.core.finding import Family, Finding, Verdict
from equipoise.mitigate.assessing import ALPHA, FEWEST, HALFWAY, MARGIN, Row, named
from equipoise.mitigate.running import Assessment


def tables_of(assessment: Assessment) -> dict[str, pa.Table]:
    """Return the tables of the report.

    Returns
    -------
    dict of str to pyarrow.Table
        `mitigation` (one row for each recipe and number), `mitigation_recipes` (the conclusion
        about each), `mitigation_subjects` (each withheld subject before and after).
    """
    rows = [
        asdict(row) | {"lowered": row.lowered, "reaches": row.reaches} for row in assessment.rows
    ]
    recipes = [
        asdict(outcome)
        | {
            "seconds": assessment.seconds[outcome.recipe],
            "model": assessment.models.get(outcome.recipe, ""),
        }
        for outcome in assessment.outcomes
    ]
    folds = {
        name: number for number, split in enumerate(assessment.splits) for name in split.withheld
    }
    floors = {} if assessment.floor is None else assessment.floor.bias
    subjects = [
        {
            "recipe": recipe,
            "measure": key[0],
            "about": key[1],
            "subject": subject,
            "fold": folds[subject],
            "before": assessment.before.bias[key][subject],
            "after": value,
            "floor": floors.get(key, {}).get(subject, math.nan),
        }
        for recipe, measured in assessment.after.items()
        for key, values in measured.bias.items()
        for subject, value in sorted(values.items())
    ]
    tables = {
        "mitigation": rows, "mitigation_recipes": recipes, "mitigation_subjects": subjects
    }  # fmt: skip
    return {name: pa.Table.from_pylist(table) for name, table in tables.items()}


def findings_of(assessment: Assessment) -> tuple[Finding, ...]:
    """Return one finding for each number: its change, without a verdict on the model."""
    conclusions = {outcome.recipe: outcome.conclusion for outcome in assessment.outcomes}
    return tuple(_finding(row, conclusions[row.recipe]) for row in assessment.rows)


def _finding(row: Row, conclusion: str) -> Finding:
    unit = "subject" if row.role == "bias" else "query" if "recall" in row.measure else "image"
    direction = "unchanged"
    if row.difference:
        went = "fell" if row.difference < 0 else "rose"
        group = "withheld subjects" if row.role == "bias" else row.about
        change = f"from {row.before:.3g} to {row.after:.3g}"
        direction = f"{named(row.measure)} of {group} {went} {change}"
    method = f"Student's t, paired by {unit}"
    if row.n < FEWEST:
        method = f"no interval: n = {row.n}, and of fewer than {FEWEST} nothing can be shown"
    parameters = {
        "halfway": HALFWAY, "margin": MARGIN, "alpha": ALPHA, "before": row.before,
        "after": row.after, "floor": None if math.isnan(row.floor) else row.floor,
    }  # fmt: skip
    return Finding(
        audit="mitigation", model=row.recipe, metric=f"{row.measure}_change", subject="",
        groups=row.about, version="default",
        family=Family.LEAF if row.role == "bias" else Family.COMPOSITE, value=row.difference,
        ci_low=row.low, ci_high=row.high, level=0.95, chance=math.nan, chance_low=math.nan,
        chance_high=math.nan, excess=math.nan, p_value=row.p_value, q_value=row.q_value,
        threshold=math.nan, n=row.n, by_group=(), excluded=(), unit=unit, method=method,
        null=f"before and after are exchangeable for each {unit}; {row.test}",
        parameters=json.dumps(parameters, sort_keys=True), direction=direction,
        verdict=Verdict.NONE,
        reason=f"a change is no disparity of its own; said of this recipe: {conclusion}",
        citation="",
    )  # fmt: skip


def notes_of(assessment: Assessment) -> tuple[str, ...]:
    """Return the limitations that a reader must know."""
    withheld, folds = sum(len(split.withheld) for split in assessment.splits), assessment.splits
    floor = "the level of a model without the bias"
    if assessment.floor is None:
        floor = "0, which trained models do not reach: no model without the bias was given"
    few = min((row.n for row in assessment.rows if row.role == "bias"), default=withheld)
    notes = (
        f"Disparities are those of {withheld} subjects, withheld in {len(folds)} parts while the "
        f"recipes learned from the others. The floor is {floor}. Every recipe is shown.",
        f"A recipe transfers where every disparity fell (q < {ALPHA}, signs of the differences "
        "exchanged over subjects), by the estimate at least halfway to the floor, and accuracy and "
        f"each recall fell by {100 * MARGIN:.0f} points at most. To lower a disparity that is "
        "measured is not to remove it everywhere: audit the new model on data of your own.",
    )
    if (least := 2.0 ** (1 - few)) <= ALPHA:
        return notes
    return (
        f"{few} subjects were withheld: the smallest p of a test over them is {least:g}, so that "
        "nothing can be shown. Withhold six or more.",
        *notes,
    )
