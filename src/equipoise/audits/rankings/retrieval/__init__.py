"""Audits of retrieval: the groups that queries rank first."""
