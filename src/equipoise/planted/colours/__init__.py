"""Shapes in pure colours: models trained without some cells, after the SkewSize paper."""
