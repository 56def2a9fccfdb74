"""Readers for the formats that data sets come in."""
