"""Integrations with other tools: a file for each, whose library is an extra."""
