"""Write the calibration page: tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tools.calibration.cases import Case
from tools.calibration.runner import (
    ALPHA,
    CONCEPTS,
    IMAGES,
    LEAST_CORRELATION,
    LEVELS,
    POWER_STRENGTHS,
    RESAMPLING,
    STRENGTHS,
    VERSIONS,
    Alarms,
    Calibration,
    Effects,
    Power,
    Rise,
)

Cells = tuple[str, ...]

HEAD = """\
# Calibration of associations, retrieval, concepts and diversity

Every metric in worlds whose bias is known: does it cry wolf where there is none, does it
rise with the bias, and how many images does it need? Written by `make calibrate`
(fixed seed: the same bytes; do not edit).
Metrics of predictions: [calibration.md](calibration.md). Whole audits:
[calibration-audits.md](calibration-audits.md).

- False alarms: {good} of {many} tests find no more than their level allows.
- Rising: {follow} of {rises} mean estimates follow the planted strength
  (Spearman ≥ {least:g} over {strengths} strengths).
- Strength is in standard deviations: at 0.5 the first group's similarities or scores lie
  half a standard deviation from the other's. What else it is, each world says below.

## Worlds

| world | how images repeat |
|---|---|
| independent | every image on its own |
| clustered | persons of one group with 2 to 6 images, alike (correlation 0.7) |
| sets | counterfactual sets, one image of each group, alike (correlation 0.9) |
| one query | one ranking of independent images |
| shared pool | six queries that rank the same images much alike, with ties |
| own pools | six queries with images of their own |
| subjects | preferences of independent subjects; strength is their correlation with a hypothesis |
| only prevalence differs | concepts are rarer in one group (20 % and 40 %), recognised alike |

Labels, 24 of them: at strength 1 a label that leans fully to one group's side is 7.4
times as likely for that group as for the other, beside a label that leans nowhere; for
label concentration one group's four most common labels have 72 % of its images instead
of 41 %. Concepts: at strength 1 the second group's positives score 0.8 standard
deviations lower, where they lie 1.5 above negatives.
"""

LIMITS = """\
## What this does not show

- ISS cross takes images as independent; near duplicates make it find too much.
- WEAT of predicted labels has next to no power, with any number of images. Where labels
  do not differ, both groups' most frequent half is nearly the same, and few labels are
  left; and of few labels d is ±1.4 whatever they are. Look at the counts beside it.
- Intervals of few units or queries are too narrow. p-values do not rest on them, and a
  verdict of `disparity` needs a p-value.
- Worlds are normal and simple. A real encoder differs in more ways than along one axis,
  and is never exactly neutral: with images enough every p-value is small.
"""


def page(calibration: Calibration) -> str:
    """Return the page as Markdown."""
    head = HEAD.format(
        good=sum(not alarm.too_many for alarm in calibration.alarms),
        many=len(calibration.alarms),
        follow=sum(rise.follows for rise in calibration.rises),
        rises=len(calibration.rises),
        least=LEAST_CORRELATION,
        strengths=len(STRENGTHS),
    )
    tables = [
        *_alarms(calibration),
        *_rises(calibration),
        *_powers(calibration),
        *_versions(calibration.effects),
    ]
    return "\n".join([head, *tables, LIMITS])


def _alarms(calibration: Calibration) -> list[str]:
    first = calibration.alarms[0]
    head = ("metric", "world", "samples", *(f"p ≤ {t:g}" for t in LEVELS), "interval", "disparity")
    return [
        "## False alarms",
        "",
        "Share of p ≤ t where the null hypothesis holds, Wilson's 95 % interval of the share of\n"
        f"p ≤ {ALPHA:g}, and share of the verdict `disparity` at α = {ALPHA:g} and the card's\n"
        "threshold. All should be at most t (or α); careful tests are below. A test by concept is\n"
        "averaged over concepts. Metrics of one world measure the same samples: their shares go\n"
        "together.",
        f"{RESAMPLING.permutations} permutations, {RESAMPLING.replicates} bootstrap replicates;",
        f"{first.drawn} samples, {calibration.slow} of concepts. “–”: no test, or no threshold.",
        "",
        *_table(head, map(_alarm_row, calibration.alarms)),
        "",
        "[Hall]'s protocol has no p-value: its verdict is an interval that excludes 0.",
        "",
        f"Tests above a limit that luck alone passes once in 1000 times: {len(calibration.again)}."
        + (" Measured again, on four times as many fresh samples:" if calibration.again else ""),
        "",
        *([*_table(head, map(_alarm_row, calibration.again)), ""] if calibration.again else []),
    ]


def _alarm_row(alarm: Alarms) -> Cells:
    shares = ["–" if math.isnan(share) else f"{share:.1%}" for share in alarm.shares]
    share = alarm.shares[LEVELS.index(ALPHA)]
    shown_share = alarm.disparities if math.isnan(share) else share
    low, high = alarm.interval(shown_share)
    verdict = f"{alarm.disparities:.1%}" if alarm.case.threshold is not None else "–"
    samples = f"{alarm.samples}" + ("" if alarm.samples == alarm.drawn else f" of {alarm.drawn}")
    return alarm.name, alarm.case.world, samples, *shares, f"{low:.1%} to {high:.1%}", verdict


def _rises(calibration: Calibration) -> list[str]:
    indices = [STRENGTHS.index(strength) for strength in (0.0, 0.5, 1.0)]
    return [
        "## Rising with the bias",
        "",
        f"Mean estimate over {calibration.rises[0].samples} samples at strengths 0, 0.5 and 1, "
        "and its",
        f"rank correlation with the strength over {len(STRENGTHS)} steps, towards harm.",
        "",
        *_table(
            ("metric", "world", "images", "at 0", "at 0.5", "at 1", "Spearman"),
            (_rise_row(rise, indices) for rise in calibration.rises),
        ),
        "",
    ]


def _rise_row(rise: Rise, indices: Iterable[int]) -> Cells:
    means = [_number(rise.means[index]) for index in indices]
    case = rise.case
    return case.name, case.world, str(case.images), *means, f"{rise.correlation:.3f}"


def _powers(calibration: Calibration) -> list[str]:
    columns = [f"p, {strength:g}" for strength in POWER_STRENGTHS]
    verdicts = [f"disparity, {strength:g}" for strength in POWER_STRENGTHS]
    return [
        "## How many images",
        "",
        "Images (of all groups; of one pool; subjects) with which 80 % of samples have",
        f"p ≤ {ALPHA:g}, and with which 80 % have the verdict `disparity`, at strengths 0.25, 0.5",
        f"and 1. {calibration.powers[0].samples} samples a point: a share may be off by a tenth. A",
        "verdict also asks for an excess of the card's threshold: a smaller bias stays without it,",
        "with any number of images.",
        "",
        *_table(("metric", "world", *columns, *verdicts), map(_power_row, calibration.powers)),
        "",
    ]


def _power_row(power: Power) -> Cells:
    case = power.case
    tested = [_needed(case, images) for images in power.found]
    judged = ["–" if case.threshold is None else _needed(case, n) for n in power.judged]
    return case.name, case.world, *tested, *judged


def _needed(case: Case, images: float) -> str:
    if images == 0.0:
        return f"≤ {case.sizes[0]}"
    return f"> {case.sizes[-1]}" if math.isinf(images) else f"{float(f'{images:.2g}'):.0f}"


def _versions(effects: Sequence[Effects]) -> list[str]:
    if not effects:
        return []
    return [
        "## Prevalence held fixed",
        "",
        f"Average precision of {CONCEPTS} concepts, {IMAGES} images, full strength: share of",
        "concepts with a significant disparity as data are, with negatives weighted, and by",
        "[Hall]'s protocol; and what [design choices](audits/concepts.md) say of the change.",
        "",
        *_table(
            ("what differs", "concepts", *VERSIONS, *(f"{name} says" for name in VERSIONS[1:])),
            (
                (
                    effect.planted,
                    str(effect.concepts),
                    *(f"{effect.significant[name]:.0%}" for name in VERSIONS),
                    *(_effects(effect.effects[name]) for name in VERSIONS[1:]),
                )
                for effect in effects
            ),
        ),
        "",
    ]


def _effects(shares: dict[str, float]) -> str:
    ordered = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {share:.0%}" for name, share in ordered)


def _number(value: float) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:.3f}".replace("-", "−")


def _table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:]]
