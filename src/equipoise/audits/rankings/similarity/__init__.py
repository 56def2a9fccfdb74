"""Audits of similarity: how similar a concept is to images of each group, all else equal."""
