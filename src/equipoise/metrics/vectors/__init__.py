"""Metrics of sets of embeddings: associations, diversity, quality."""
