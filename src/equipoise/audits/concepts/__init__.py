"""Audits of concepts: multi-label scores, and what disparities owe to choices."""
