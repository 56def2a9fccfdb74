"""Shapes in pure colours: models trained without some cells, after the SkewSize paper."""

from equipoise.planted.colours.models import predict_table
from equipoise.planted.colours.render import render_test_set

__all__ = ["predict_table", "render_test_set"]
