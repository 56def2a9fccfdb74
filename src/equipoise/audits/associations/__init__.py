"""Audits of associations: of image sets, of text-to-image models, and what they share."""
