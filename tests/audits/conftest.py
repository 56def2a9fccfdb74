"""A configuration file in the working directory, and pictures of one colour each."""

from pathlib import Path

import pytest

from audits.predictions.models import painted
from equipoise.audits import load_config


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write a text as c.yaml and load it by that name."""
    monkeypatch.chdir(tmp_path)

    def loaded(content):
        raw = content if isinstance(content, bytes) else content.encode()
        Path("c.yaml").write_bytes(raw)
        return load_config("c.yaml")

    return loaded


@pytest.fixture(scope="session")
def colours(tmp_path_factory):
    """Return a folder of pictures with their table."""
    folder = tmp_path_factory.mktemp("colours")
    painted(folder)
    return folder
