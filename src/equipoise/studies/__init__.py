"""Published studies: each is a file of this folder, with its configuration and its tables."""

from pathlib import Path

from equipoise.discovery import Places

STUDIES = Places("study", "equipoise.studies", Path(__file__).parent, "*.yaml", __name__)
"""The package that has the file of each study, by name."""
