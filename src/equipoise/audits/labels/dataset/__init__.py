"""Audits of data sets: groups, labels and image quality."""
