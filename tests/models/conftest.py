"""The model of the family that a module's own fixture names."""

import pytest

from equipoise.models import load_model


@pytest.fixture(scope="module")
def folder(checkpoint, family):
    return checkpoint(family)


@pytest.fixture(scope="module")
def model(folder):
    return load_model(f"hf:{folder}", device="cpu")
