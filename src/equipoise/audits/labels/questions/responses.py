"""The responses that everything is measured on: one row per item, wording and order."""

from __future__ import annotations

from equipoise.core import Floats, Integers, Objects, record
from equipoise.core.columns import INTEGER, TEXT

COLUMNS = {
    "item": TEXT,
    "wording": TEXT,
    "order": TEXT,
    "state": TEXT,
    "option": TEXT,
    "position": INTEGER,
    "answer": TEXT,
}
"""Columns of the table `responses` beside `probability_A`, `probability_B`, ….

`order` has the letters of the options as listed, in the order in which they were shown. `option`
is the letter of the chosen option as listed, empty without one, and `position` where it stood,
from 1. `answer` is the text. `state` is "answered"; "undecided" (the undecided option);
"ambiguous", "unresolved", "unknown", "refused" or "missing" for texts that choose no option; or
where asking failed: "read", "decode", "model", "cut" or "request".
"""


@record
class Responses:
    """A model's responses, one for each item, wording and order.

    Attributes
    ----------
    item : ndarray of int64, shape (n,)
        Place of the item.
    wording : ndarray of int64, shape (n,)
        Place of the wording.
    order : ndarray of str objects, shape (n,)
        Letters of the options as shown.
    option : ndarray of int64, shape (n,)
        Place of the chosen option; -1 without one.
    state : ndarray of str objects, shape (n,)
    text : ndarray of str objects, shape (n,)
        As the model wrote it; None where it wrote nothing.
    probabilities : ndarray of float64, shape (n, options)
        Of the options as listed; NaN where the model gave none.
    """

    item: Integers
    wording: Integers
    order: Objects
    option: Integers
    state: Objects
    text: Objects
    probabilities: Floats
