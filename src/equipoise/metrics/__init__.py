"""Metrics: arrays in, an `Estimate` out."""
