"""Audits of rankings: retrieval, counterfactuals, similarity, and what they share."""
