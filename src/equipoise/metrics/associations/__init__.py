"""Associations of embeddings: how much closer targets are to one attribute set than to another."""
