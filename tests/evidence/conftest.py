"""Pictures on disk, and a place for what models make of them."""

import pytest

from picture_models import write_pictures


@pytest.fixture
def photos(tmp_path):
    """A folder of 12 small pictures."""
    write_pictures(tmp_path / "photos", 12)
    return tmp_path / "photos"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"
