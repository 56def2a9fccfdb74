"""Audits of predictions: labels, groups and what models answered."""
