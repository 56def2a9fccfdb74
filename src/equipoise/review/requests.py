"""Numbers in requests to the local page, read without errors."""

import math

_DIGITS = 9
PLACE = f"[0-9]{{1,{_DIGITS}}}"
"""Pattern of a number in an address: of a finding, an image, a class."""


def parse_whole_number(text: str) -> int | None:
    """Return a whole number of at most nine digits; None of any other text."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        return None
    return int(text)


def parse_number(text: str) -> float | None:
    """Return a number that isn't NaN; None of any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    if math.isnan(number):
        return None
    return number
