"""Classifiers and the libraries that run them."""
