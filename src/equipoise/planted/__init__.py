"""Worlds of known bias with models trained on them, and pictures of people."""

from equipoise.planted import scenes

__all__ = ["scenes"]
