"""Whether counterfactual sets are whole: one image of every combination of attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.labels import encode

if TYPE_CHECKING:
    from equipoise.audits.retrieval.designs import Design


def sets_of(design: Design) -> dict[str, int]:
    """Count the sets whose images are compared.

    Parameters
    ----------
    design : Design

    Returns
    -------
    dict of str to int
        `subjects`, `sets`, `incomplete` (sets that lack a combination that others have) and
        `repeated` (sets with several images of one combination). Images without an attribute,
        subject or set are in none.
    """
    config = design.config.data
    subject, _ = encode(design.column(str(config.subject)), what="subject")
    member, _ = encode(design.column(str(config.sets)), what="sets")
    groups = design.groups
    kept = (subject >= 0) & (member >= 0) & (groups.codes >= 0)
    # Sets of one name and different subjects are different sets.
    _, own = np.unique(np.stack([subject[kept], member[kept]]), axis=1, return_inverse=True)
    many = int(own.max()) + 1 if kept.any() else 0
    flat = np.ravel(own) * len(groups) + groups.codes[kept]
    held = np.bincount(flat, minlength=many * len(groups)).reshape(many, len(groups))
    expected = held.any(axis=0)
    return {
        "subjects": len(np.unique(subject[kept])),
        "sets": many,
        "incomplete": int((held[:, expected] == 0).any(axis=1).sum()),
        "repeated": int((held > 1).any(axis=1).sum()),
    }
