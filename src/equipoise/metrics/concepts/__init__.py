"""Concepts: per-concept disparities of multi-label scores, and how they depend on choices."""
