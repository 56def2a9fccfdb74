"""Names of labellers, and checks that they don't mislead or overrule."""

import unicodedata

from equipoise.core.wording import visible

SETTLED = "settled"
"""Labeller whose answer counts where others disagree; needs `equipoise label read --settled`."""
LONGEST_NAME = 80
_JOINERS = "\u200c\u200d"
_GARBLED = "\ufffd"


def name_problem(name: str, *, settles: bool = False) -> str:
    """Return the expectation that a labeller's name fails; empty if it is valid.

    Parameters
    ----------
    name : str
    settles : bool
        Whether the name that settles disagreements is allowed.
    """
    visible_name = name.translate(dict.fromkeys(map(ord, _JOINERS)))
    if not visible_name.strip():
        return "a name"
    if len(name) > LONGEST_NAME:
        return f"a name of at most {LONGEST_NAME} characters"
    if visible(name) != name or _GARBLED in name:
        return "a name without control, invisible or broken characters"
    if unicodedata.normalize("NFKC", visible_name).strip().casefold() == SETTLED and not (
        settles and name == SETTLED
    ):
        return f"a name other than {SETTLED!r}, which overrules all others"
    return ""
