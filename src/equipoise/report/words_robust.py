"""Which conclusions of a baseline hold in other versions, and where that cannot be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from equipoise.report.tables import Row, has, panels
from equipoise.report.text import listed, plural
from equipoise.report.words_concepts import name_of, size, worse

UNKNOWN = "not estimable"
_KEY = ("model", "groups", "metric", "concept", "group_a", "group_b")
_MOST_REASONS, _MOST_NAMES = 3, 6


@dataclass(frozen=True)
class Held:
    """A conclusion of the baseline, and the versions that it was held against.

    Attributes
    ----------
    row : mapping
        Of the table "robust".
    unknown : sequence of mapping
        Rows of the table "choices": versions in which it cannot be estimated.
    """

    row: Row
    unknown: Sequence[Row]

    @property
    def agrees(self) -> bool:
        """Whether all versions that can be estimated conclude the same."""
        return bool(self.row["agreeing"] == self.row["versions"])

    @property
    def robust(self) -> bool:
        """Whether all versions can be estimated, and conclude the same."""
        return self.agrees and not self.unknown

    @property
    def alone(self) -> bool:
        """Whether no version but the baseline can be estimated."""
        return bool(self.row["versions"] == 1 and self.unknown)

    @property
    def where(self) -> str:
        """In which versions it holds, and why the others say nothing of it."""
        known, left = self.row["versions"], len(self.unknown)
        if not left:
            return f"in all {known} versions"
        why = _reasons(self.unknown)
        if self.alone:
            none = "the other version cannot" if left == 1 else f"none of {left} others can"
            return f"in the baseline alone; {none} be estimated: {why}"
        every = f"{known} of {known + left} versions"
        return f"in all {every} that can be estimated; {left} cannot: {why}"


def held(robust: Iterable[Row], choices: Iterable[Row]) -> list[Held]:
    """Put each row of the table "robust" beside the versions, of "choices", that say nothing."""
    unknown = panels([row for row in choices if row["effect"] == UNKNOWN], *_KEY)
    return [Held(row, unknown.get(tuple(str(row[key]) for key in _KEY), ())) for row in robust]


def _reasons(unknown: Iterable[Row]) -> str:
    """Name versions with the reason why they cannot be estimated."""
    by_reason: dict[str, list[str]] = {}
    for row in unknown:
        # Runs from before there were reasons have none.
        by_reason.setdefault(row.get("reason", ""), []).append(f"“{row['version']}”")
    told = [
        listed(names, _MOST_NAMES) + (f" ({why})" if why else "")
        for why, names in by_reason.items()
    ]
    more = [f"others ({len(told) - _MOST_REASONS} more reasons)"] * (len(told) > _MOST_REASONS)
    return ", ".join([*told[:_MOST_REASONS], *more])


def counted(found: Sequence[Held]) -> str:
    """Count the conclusions that hold in every version, and apart from them those not judged."""
    loud = [one for one in found if one.row["conclusion"]]
    quiet = [one for one in found if not one.row["conclusion"]]
    return (
        f"Of {plural(len(loud), 'significant difference')} of the baseline, "
        f"{_count(loud, 'holds', 'hold')}; of {len(quiet)} that are not significant, "
        f"{_count(quiet, 'is so', 'are so')}."
    )


def _count(found: Sequence[Held], one: str, many: str) -> str:
    robust = sum(each.robust for each in found)
    alone = sum(each.alone for each in found)
    some = sum(each.agrees for each in found) - robust - alone
    told = [f"{robust} {one if robust == 1 else many} in every version"]
    told += [f"{some} in all that can be estimated (not all can)"] if some else []
    told += [f"{alone} in no other, as none can be estimated"] if alone else []
    return listed(told)


def without_baseline(choices: Iterable[Row]) -> Iterator[str]:
    """Name what the baseline cannot estimate: it concludes nothing that could hold or not."""
    lost = panels([r for r in choices if not has(r["baseline_value"])], *_KEY[3:])
    if lost:
        firsts = [some[0] for some in lost.values()]
        named = [f"{_subject(row, firsts)}{_because(row)}" for row in firsts]
        yield f"Not estimable in the baseline, which concludes nothing of it: {listed(named)}."


def _subject(row: Row, among: Sequence[Row]) -> str:
    pairs = {(one["group_a"], one["group_b"]) for one in among}
    name = name_of(row["concept"])
    return f"{name} ({row['group_a']} and {row['group_b']})" if len(pairs) > 1 else name


def _because(row: Row) -> str:
    why = row.get("baseline_reason", "")
    return f" ({why})" if why else ""


def unknowns(panel: Sequence[Row]) -> list[str]:
    """Say in which versions nothing is known of a disparity, and why.

    Versions that can estimate nothing come first; then each disparity that others cannot.

    Parameters
    ----------
    panel : sequence of rows of the table "choices"
        Of one model, groups and metric.
    """
    empty = [*_empty(panel)]
    left = {row["version"] for some in empty for row in some}
    rest = [row for row in panel if row["effect"] == UNKNOWN and row["version"] not in left]
    return [
        *(f"Nothing is estimable under {_reasons(some)}." for some in empty),
        *(_unknown(some, _subject(some[0], panel)) for some in panels(rest, *_KEY[3:]).values()),
    ]


def _empty(panel: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield a row of each version that estimates nothing, for one and the same reason."""
    for some in panels(panel, "version").values():
        none = all(row["effect"] == UNKNOWN and has(row["baseline_value"]) for row in some)
        if none and len(some) > 1 and len({row.get("reason", "") for row in some}) == 1:
            yield some[:1]


def _unknown(some: Sequence[Row], subject: str) -> str:
    first = some[0]
    if has(first["baseline_value"]):
        return f"{subject}: not estimable under {_reasons(some)}."
    text = f"{subject}: not estimable in the baseline{_because(first)}"
    seen = [_seen(row) for row in some if has(row["value"])]
    return f"{text}; {'; '.join(seen)}." if seen else f"{text}, nor in any other version."


def _seen(row: Row) -> str:
    sign = -1.0 if row["value"] < 0 else 1.0
    found = "significant" if row["significant"] else "not significant"
    return (
        f"under “{row['version']}” {size(row, sign)}, worse for {worse(row, row['value'])}, {found}"
    )
