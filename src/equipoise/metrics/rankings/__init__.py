"""Retrieval: whom a ranking of images shows first, and how similarity differs between groups."""
