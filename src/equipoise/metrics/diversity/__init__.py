"""Diversity of image sets: mean distances within and between sets of embeddings."""
