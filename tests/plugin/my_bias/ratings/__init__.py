"""Audits of ratings."""
