"""Words that messages, notes and reports share: numbers, counts, long texts cut short."""

import math
import unicodedata
from functools import lru_cache

PERCEIVED = (
    "Groups are as the data label them: perceived attributes, not identities. The findings "
    "say nothing about groups that the labels do not name."
)
"""The first note of every audit of groups of people."""

_MOST = 60
_ROUNDING = 1e-12


def shortened(text: str, most: int = _MOST) -> str:
    """Return a text, cut to 60 characters or another number, with "…" at the end of a cut."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


_DECIMALS = 5


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table: fixed decimals, "–" where there is none.

    Magnitudes that would round to 0 keep their first significant digit, as decimals from
    0.00001 on, but for those that are the rounding of sums. 0 has no sign.
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) <= _ROUNDING:
        return f"{0.0:.{digits}f}"
    text = f"{value:.{digits}f}"
    if not float(text):
        decimals = -math.floor(math.log10(abs(value)))
        text = f"{value:.{decimals}f}" if decimals <= _DECIMALS else f"{value:.1g}"
    return text.replace("-", "−")


def percent(share: float, digits: int = 1) -> str:
    """Return a share in [0, 1] as a percentage with some decimals."""
    return f"{round(100 * share, digits) + 0.0:.{digits}f}\u00a0%".replace("-", "−")


_JOINERS = frozenset("\u200c\u200d")  # scripts such as Persian and emoji need these two
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def visible(text: object) -> str:
    r"""Return text with control, bidirectional and other invisible characters spelled out.

    A label may hold anything. Invisible characters can reorder a line or end a document, so they
    are shown as their escapes (a right-to-left override as `\u202e`). HTML is not escaped here.
    """
    line = str(text)
    if line.isprintable():
        return line
    return "".join(map(_shown, line))


@lru_cache(1024)
def _shown(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN or character in _JOINERS:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
