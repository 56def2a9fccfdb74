"""Experiment trackers that `Result.log` writes to: a file for each, found by a scan."""
