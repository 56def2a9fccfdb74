"""Audits of associations: what embeddings place close to which groups."""
