"""Audits of rankings: whom a query shows first."""
