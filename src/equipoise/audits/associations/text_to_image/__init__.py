"""Audits of text-to-image models: associations and shares of groups."""
