"""Reference values that lie beside the checkout, in ../shared/goldens; tests skip without them."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "goldens"
ABSENT = "reads ../shared, which is absent"


class Golden:
    """Named values of one file; a test that asks for one is skipped where the file is absent."""

    def __init__(self, name):
        self.path = FOLDER / name

    def __getitem__(self, key):
        if not self.path.exists():
            pytest.skip(ABSENT)
        return json.loads(self.path.read_text())[key]


def cases(name):
    """Return the cases of one file as parameters, or one that is skipped where it is absent."""
    path = FOLDER / name
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=ABSENT))]
    return [
        pytest.param(case, id=str(index)) for index, case in enumerate(json.loads(path.read_text()))
    ]
