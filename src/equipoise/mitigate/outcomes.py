"""What is to be said of each recipe, to be read in one go: what fell, what rose, the price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.core.wording import number
from equipoise.mitigate.assessing import ALPHA, MARGIN, Row
from equipoise.mitigate.measuring import ACCURACY, GAP, NDKL, RANKS

MOST_NAMED = 3

_NAMES = {
    NDKL: "NDKL",
    GAP: "similarity gap in logits",
    ACCURACY: "zero-shot accuracy",
    **{f"{kind}_recall_at_{k}": f"{kind} retrieval R@{k}" for kind in ("image", "text")
       for k in RANKS},
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What is to be said of one recipe.

    Attributes
    ----------
    recipe : str
    transfers : bool
        Every bias of withheld subjects fell (q < 0.05), by the estimate at least halfway to the
        floor, and neither accuracy, which was measured, nor a recall fell by more than the margin
        on any set.
    conclusion : str
        "transfers", "transfers in part", "does not transfer", "costs too much": a bias fell, and
        accuracy or a recall by more than the margin; "price not measured": halfway, without a set
        to measure accuracy on; or "cannot be told": nothing was seen to fall, and an interval
        leaves open that it fell halfway, or no bias is clear of the floor.
    sentence : str
        Sentences without a stop at the end; the first begins in lower case, to follow a colon.
    """

    recipe: str
    transfers: bool
    conclusion: str
    sentence: str


def outcomes(rows: Sequence[Row]) -> tuple[Outcome, ...]:
    """Say of each recipe whether what it does holds for withheld subjects, and at what price."""
    return tuple(
        _outcome(recipe, [row for row in rows if row.recipe == recipe])
        for recipe in dict.fromkeys(row.recipe for row in rows)
    )


def _outcome(recipe: str, rows: Sequence[Row]) -> Outcome:
    every = [row for row in rows if row.role == "bias"]
    # A disparity that is not clear of the floor leaves nothing to lower halfway.
    biases = [row for row in every if not row.share_reason]
    utilities = [row for row in rows if row.role == "utility"]
    reached, lowered = sum(row.reaches for row in biases), sum(row.lowered for row in biases)
    unsure = [row for row in biases if row.open]
    halfway = reached == len(biases)
    conclusion = (
        "costs too much" if lowered and any(row.dear for row in utilities)
        else "transfers in part" if lowered and not halfway
        else "cannot be told" if unsure or not biases
        else "does not transfer" if not lowered
        else "transfers" if any(row.measure == ACCURACY for row in utilities)
        else "price not measured"
    )  # fmt: skip
    return Outcome(recipe, conclusion == "transfers", conclusion, told(rows))


def named(measure: str) -> str:
    """Return the name of a measure within a sentence."""
    return _NAMES.get(measure, measure.replace("_", " "))


def told(rows: Sequence[Row]) -> str:
    """Say what became of the disparities of withheld subjects, and at what price.

    Parameters
    ----------
    rows : sequence of Row
        Of one recipe.

    Returns
    -------
    str
        Sentences without a stop at the end; the first begins in lower case, to follow a colon.
    """
    biases = [row for row in rows if row.role == "bias"]
    utilities = [row for row in rows if row.role == "utility"]
    said = [_directions(biases), *_shown(biases), *_unclear(biases), *_price(utilities)]
    return ". ".join(said)


def _directions(biases: Sequence[Row]) -> str:
    fell = _some([row for row in biases if row.difference < 0], "fell")
    rose = _some([row for row in biases if row.difference > 0], "rose")
    same = sum(row.difference == 0 for row in biases)
    stayed = [f"{same} stayed as {'it was' if same == 1 else 'they were'}"] if same else []
    whose = "disparity" if len(biases) == 1 else "disparities"
    return f"of {len(biases)} {whose} of withheld subjects, {_joined([fell, rose, *stayed])}"


def _some(rows: Sequence[Row], went: str) -> str:
    """Return "2 rose (NDKL over hue, 0.2 to 0.3; …)", what is shown best first."""
    if not rows:
        return f"none {went}"
    ordered = sorted(rows, key=lambda row: math.inf if math.isnan(row.q_value) else row.q_value)
    each = [
        f"{named(row.measure)} over {row.about}, {number(row.before)} to {number(row.after)}"
        for row in ordered[:MOST_NAMED]
    ]
    more = len(rows) - MOST_NAMED
    return f"{len(rows)} {went} ({'; '.join([*each, *([f'{more} more'] if more > 0 else [])])})"


def _shown(biases: Sequence[Row]) -> list[str]:
    """Say which changes are more than chance, how far, and where subjects are too few to say."""
    fell = [row for row in biases if row.lowered]
    near = sum(bool(row.share_reason) for row in fell)
    rose = sum(row.raised for row in biases)
    some = [f"{len(fell)} fell"] if fell else []
    if near:
        some = [f"{len(fell)} fell ({near} from near the floor)"]
    if rose:
        some.append(f"{rose} rose")
    text = (
        f"Beyond chance (q < {ALPHA}), {_joined(some)}"
        if some
        else f"No change is beyond chance (q < {ALPHA})"
    )
    unsure = [row for row in biases if row.open]
    if unsure:
        it = "it" if len(unsure) == 1 else "they"
        half = "by half" if _without_floor(biases) else "halfway to the floor"
        text += f"; of {len(unsure)}, {unsure[0].n} subjects cannot tell whether {it} fell {half}"
    return [text, *_halves(fell)] if biases else []


def _halves(fell: Sequence[Row]) -> list[str]:
    """Say how many of those that fell did so halfway: an estimate, which no test is of."""
    if all(row.share_reason for row in fell):
        return []
    half = "by half" if _without_floor(fell) else "halfway to the floor"
    if not any(row.reaches for row in fell):
        none = f"none of the {len(fell)} that fell did so"
        if len(fell) == 1:
            none = "the one that fell did not do so"
        elif any(row.share_reason for row in fell):
            none = "none that was clear of the floor did so"
        return [f"By the estimate, {none} {half}"]
    reached = [row for row in fell if row.reaches]
    whole = sum(row.clears for row in reached)
    who = "the one" if len(fell) == 1 else f"{len(reached)} of the {len(fell)}"
    far = half.replace("by half", "by half or more").replace("halfway", "at least halfway")
    each = ("with" if whole else "not with") + " its whole interval"
    intervals = each if len(reached) == 1 else f"{whole or 'none'} with the whole interval"
    return [f"By the estimate, {who} that fell did so {far}, {intervals}"]


def _without_floor(biases: Sequence[Row]) -> bool:
    return all(math.isnan(row.floor) for row in biases)


def _unclear(biases: Sequence[Row]) -> list[str]:
    """Say of how many disparities no half can be told."""
    unclear = sum(bool(row.share_reason) for row in biases)
    if not unclear:
        return []
    was, it = ("was", "it") if unclear == 1 else ("were", "them")
    return [f"{unclear} {was} not clear of the floor before: no half can be told of {it}"]


def _price(utilities: Sequence[Row]) -> list[str]:
    """Say what accuracy and recall lost at worst, how much more it may be, and what is too much."""
    accuracy = [row for row in utilities if row.measure == ACCURACY]
    recall = [row for row in utilities if row.measure != ACCURACY]
    parts = [_worst(accuracy, "accuracy changed by") if accuracy else "accuracy was not measured"]
    if recall:
        parts.append(_worst(recall, "recall changed, at worst, by"))
    text = "; ".join(parts)
    said = [text[0].upper() + text[1:]]
    dear = [f"{named(row.measure)} on {row.about}" for row in utilities if row.dear]
    if dear:
        more = f" and {len(dear) - 1} more" if len(dear) > 1 else ""
        said.append(f"More than {100 * MARGIN:.0f} points were lost in {dear[0]}{more}")
    return said


def _worst(rows: Sequence[Row], changed: str) -> str:
    worst = min(rows, key=lambda row: row.difference)
    lowest = min((row.low for row in rows if not math.isnan(row.low)), default=0.0)
    reach = f" (its interval reaches {_points(lowest)})" if lowest < -MARGIN else ""
    return f"{changed} {_points(worst.difference)}{reach}"


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[:-1] else []), *parts[-1:]])


def _points(difference: float) -> str:
    change = round(100 * difference, 1) + 0.0
    return f"{change:+.1f} points".replace("-", "−") if change else "0 points"
