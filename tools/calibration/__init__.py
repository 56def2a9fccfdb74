"""Calibration: what metrics say of embeddings, rankings and scores whose bias is known."""
