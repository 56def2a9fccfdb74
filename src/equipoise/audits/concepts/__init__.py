"""Audits of concepts: multi-label scores under several choices."""
