"""Audits of multiple-choice questions about images, by group."""
