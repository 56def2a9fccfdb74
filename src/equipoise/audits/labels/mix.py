"""Rates of labels over all rows, and the classes and attributes that rows are mixed of."""

import numpy as np

from equipoise.audits.cells import Mix, Rate
from equipoise.audits.labels.designs import LabelDesign
from equipoise.core import Booleans
from equipoise.data import Coded
from equipoise.metrics.spec import SPECS


def mix_of(design: LabelDesign, *, version: str, state_version: str, with_subject: bool) -> Mix:
    """Return the rates of right, wrong and unanswered rows of a design, and their mix.

    Parameters
    ----------
    design : LabelDesign
    version, state_version : str
        As findings about labels have it, and those about rows with and without an answer.
    with_subject : bool
        Whether findings about right, wrong and unanswered rows have it as their subject.
    """
    target = design.target
    answered = design.labels.coded_state.take(design.rows).equals("answered")
    # Without true classes every row counts, and nothing is right.
    counted = target.codes >= 0 if target.vocabulary else np.ones(len(answered), dtype=np.bool_)
    right = _right(design)
    states = {"unanswered": ~answered, "right": answered & right, "wrong": answered & ~right}
    if not target.vocabulary:
        del states["right"], states["wrong"]
    rates = []
    for metric, spec in SPECS.items():
        if spec.state not in states or (spec.of_answered and design.wording):
            continue
        rows = counted & (design.label.codes >= 0) if spec.of_answered else counted
        outcome = np.where(rows, states[spec.state], -1).astype(np.int32)
        if spec.of_answered:
            rates.append(Rate(metric, "", version, outcome))
        else:
            subject = spec.state if with_subject else ""
            rates.append(Rate(metric, subject, state_version, outcome))
    strata = {name: column.take(design.rows) for name, column in _attributes(design).items()}
    return Mix(design.groups, tuple(rates), {"": target, **strata}, design.units)


def _right(design: LabelDesign) -> Booleans:
    """Return whether each label is the true class."""
    target, label = design.target, design.label
    codes = {name: code for code, name in enumerate(target.vocabulary)}
    of_label = np.array([*(codes.get(name, -2) for name in label.vocabulary), -2], dtype=np.int32)
    return np.asarray(of_label[label.codes] == target.codes)


def _attributes(design: LabelDesign) -> dict[str, Coded]:
    """Return the attributes that the groups aren't made of."""
    attributes = design.data.coded_attributes
    return {name: attributes[name] for name in attributes if name not in design.groups.attributes}
