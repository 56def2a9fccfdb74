"""A configuration file in the working directory."""

from pathlib import Path

import pytest

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
