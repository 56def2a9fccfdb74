"""Checks of what equipoise guarantees: random kills, damaged files, changed inputs."""
