"""Audits of free-text answers to a question: who gets none, and who gets which."""
