"""Associations of sets of images and texts in the spaces of models."""
