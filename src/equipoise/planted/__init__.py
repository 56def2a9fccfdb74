"""Worlds whose bias is known, with small models trained on them."""

from equipoise.planted import scenes

__all__ = ["scenes"]
