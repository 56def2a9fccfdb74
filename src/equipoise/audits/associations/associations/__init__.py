"""Audits of associations between embeddings and groups."""
