"""Shares of the world outside, by target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from equipoise.audits.config_arrays import located
from equipoise.core.errors import DataError
from equipoise.data import read_table

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config_shares import OutsideSharesConfig, SharesConfig


@dataclass(frozen=True, eq=False)
class Outside:
    """What shares are held against.

    Attributes
    ----------
    name : str
    by_target : mapping of str to (mapping of str to float, or "uniform")
        Targets that have such shares.
    inputs : mapping
        Of the file.
    """

    name: str
    by_target: Mapping[str, Mapping[str, float] | Literal["uniform"]]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def outside_of(share: SharesConfig, targets: tuple[str, ...], base: Path) -> Outside:
    """Read shares from outside, or take equal ones.

    Raises
    ------
    DataError
        When the table cannot be read, no target of the audit is in it, a class of a target that
        is has no number, or a cell is none.
    """
    given = share.outside
    if isinstance(given, str) or given is None:
        return Outside("equal shares", dict.fromkeys(targets, "uniform"))
    table = read_table(
        located(given.table, base), texts=given.columns, role=f"outside shares of {share.of}",
        encoding=given.encoding, delimiter=given.delimiter,
    )  # fmt: skip
    found: dict[str, dict[str, float]] = {}
    cells = (table.texts[one].to_list() for one in given.columns)
    for row, (target, group, value) in enumerate(zip(*cells, strict=True), start=1):
        if target in targets and group in share.compared:
            known = found.setdefault(target, {})
            if group in known:
                raise DataError(
                    f"{target!r} and {group!r} are there twice", file=table.name, row=row,
                    expected="one share of each class of a target", fix="remove one of the rows",
                )  # fmt: skip
            known[group] = _number(value, given, table.name, row)
    _check(found, share, targets, table.name, given.target)
    return Outside(given.name, found, {table.name: table.digest})


def _number(text: str | None, given: OutsideSharesConfig, file: str, row: int) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = np.nan
    if not 0 <= number < np.inf:
        raise DataError(
            f"the share is {text!r}",
            file=file,
            column=given.value,
            row=row,
            expected="a share or count, at least 0",
            fix="fill it in, or leave the target out",
        )
    return number


def _check(
    found: Mapping[str, Mapping[str, float]],
    share: SharesConfig,
    targets: tuple[str, ...],
    file: str,
    column: str,
) -> None:
    if not found:
        raise DataError(
            "it has none of the targets",
            file=file,
            column=column,
            expected=f"some of {', '.join(targets[:5])}",
            fix="name the column of the targets' names",
        )
    for target, numbers in found.items():
        missing = [one for one in share.compared if one not in numbers]
        if missing or not sum(numbers.values()):
            what = f"{missing[0]!r} has no share" if missing else "all shares are 0"
            raise DataError(
                f"{target!r}: {what}",
                file=file,
                expected=f"a share of each of {', '.join(share.compared)}",
                fix="add it, or leave the target out",
            )
