"""Audits of regression: how far predicted numbers are from the truth, by group."""
