"""Audits of image sets: how diverse each is, and how far apart they lie."""
