"""Findings and conclusions about edits: the association before and after, and the price."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from equipoise.core import Aggregate, Family, Finding, NullHypothesis, Verdict
from equipoise.core.conclusion import Conclusion, Standing
from equipoise.core.finding import REAL, plain_parameters
from equipoise.core.wording import number
from equipoise.mitigate.concluding import BEFORE, verdict_of_price
from equipoise.mitigate.measuring import ACCURACY, HALFWAY, MARGIN
from equipoise.mitigate.trials import ASSOCIATION

BIAS, PRICES = ASSOCIATION, (ACCURACY, "text_recall_at_1")
_NEARLY = 0.9

Row = Mapping[str, Any]


def choose_edit(swept: Sequence[Row]) -> int:
    """Return the fewest components that take nearly all of the association away, cheaply.

    Of edits that cost at most 2 points of accuracy, the first that takes nine tenths of the
    largest fall.

    Parameters
    ----------
    swept : sequence of mapping
        Rows of `neurons_sweep` of one kind.
    """
    accuracy = {row["units"]: row["difference"] for row in swept if row["measure"] == PRICES[0]}
    changes = [row for row in swept if row["measure"] == BIAS]
    cheap = [row for row in changes if accuracy.get(row["units"], 0.0) >= -MARGIN] or changes
    falls = [abs(row["before"]) - abs(row["after"]) for row in cheap]
    enough = min(max(falls), _NEARLY * max(falls))
    return next(int(row["units"]) for row, fall in zip(cheap, falls, strict=True) if fall >= enough)


def conclude_edits(
    sweep: Sequence[Row], concepts: str, n: int
) -> tuple[tuple[Finding, ...], tuple[Conclusion, ...]]:
    """Return the changes by the edit that is chosen for each kind, and what they come to.

    Parameters
    ----------
    sweep : sequence of mapping
        Rows of `neurons_sweep`.
    concepts : str
        What the association is of.
    n : int
        Images.
    """
    findings, conclusions = list[Finding](), list[Conclusion]()
    several = len({row["mode"] for row in sweep}) > 1
    for (kind, mode), kind_rows in groupby(sweep, key=lambda row: (row["kind"], row["mode"])):
        swept = [*kind_rows]
        units = choose_edit([row for row in swept if row["units"]])
        places = dict[str, tuple[int, Row]]()
        for row in swept:
            if row["units"] == units:
                places[row["measure"]] = (len(findings), row)
            name = edit_name(row["units"], kind, mode if several else "")
            findings.append(_finding(row, name, concepts, n))
        for measure in (BIAS, *PRICES):
            if measure in places:
                place, row = places[measure]
                conclusions.append(_conclude(row, findings[place].model, concepts, n, place))
    return tuple(findings), tuple(conclusions)


def edit_name(units: int, kind: str, mode: str = "") -> str:
    """Return what an edit is called: "10 of the units and texts changed, remove"."""
    name = f"{units} of the {kind.replace('+', ' and ').replace('_', ' ')} changed"
    return f"{name}, {mode}" if mode else name


def _groups(row: Row, concepts: str) -> str:
    return concepts if row["measure"] == BIAS else ""


def _finding(row: Row, name: str, concepts: str, n: int) -> Finding:
    p_value = math.nan if row["p_value"] is None else float(row["p_value"])
    beside = ""
    if row["measure"] == BIAS and row["random"] is not None:
        ends = f"{number(row['random_low'])} to {number(row['random_high'])}"
        beside = (
            f"As many random components of the same layers change it by {number(row['random'])} "
            f"({ends})."
        )
    # Of recall with neutral captions: "recall_at_1, neutral captions".
    metric, _, version = str(row["measure"]).partition(", ")
    parameters = {key: row[key] for key in ("before", "after", "random", "edit")}
    return Finding(
        audit="mitigation", model=name, metric=metric, version=version or "default",
        change_from=BEFORE, groups=_groups(row, concepts), family=Family.COMPOSITE,
        value=row["difference"],
        ci_low=_known(row["difference_low"]), ci_high=_known(row["difference_high"]), level=0.95,
        p_value=p_value, n=n, unit="image", method="paired bootstrap over images",
        null=NullHypothesis.NONE, parameters=plain_parameters(parameters), beside=beside,
        reason="a change is no disparity of its own",
    )  # fmt: skip


def _known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _conclude(row: Row, name: str, concepts: str, n: int, place: int) -> Conclusion:
    low, high = _known(row["difference_low"]), _known(row["difference_high"])
    differs = low > 0 or high < 0
    before, after = float(row["before"]), float(row["after"])
    if row["measure"] == BIAS:
        better = abs(after) < abs(before)
        verdict = _verdict_of_bias(row, differs=differs)
    else:
        better = after > before
        verdict = verdict_of_price(low, high, differs=differs)
    standings = Standing(model=name, value=after), Standing(model=BEFORE, value=before)
    if not better:
        standings = standings[::-1]
    return Conclusion(
        model=name, verdict=verdict, groups=_groups(row, concepts), metric=row["measure"],
        aggregate=Aggregate.VALUE, size=float(row["difference"]), low=low, high=high, n=n,
        finding=place, standings=standings,
        worse=standings[-1].model if verdict in REAL else "",
    )  # fmt: skip


def _verdict_of_bias(row: Row, *, differs: bool) -> Verdict:
    """Return whether an edit changes the association more than random ones, and by half."""
    tried = row["random_low"] is not None
    beyond_random = not tried or not row["random_low"] <= row["difference"] <= row["random_high"]
    if not (differs and beyond_random):
        return Verdict.INCONCLUSIVE
    left = abs(row["after"]) / abs(row["before"]) if row["before"] else 1.0
    return Verdict.DISPARITY if 1 - left >= HALFWAY else Verdict.DETECTED
