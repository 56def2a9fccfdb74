"""Audits of data sets: who is in them, with which labels, and in what quality."""
