"""Worlds whose bias is known, with small models trained on them."""
