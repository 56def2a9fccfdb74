"""Worlds of known bias with models trained on them, and pictures of people."""

from equipoise.planted import colours, faces, people, scenes

__all__ = ["colours", "faces", "people", "scenes"]
