"""Audits of labels: predictions, answers, data sets, and what they share."""
