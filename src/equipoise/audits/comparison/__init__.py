"""Comparison of models on the same images."""
