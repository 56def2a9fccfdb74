"""Audits of text-to-image models: whom images of neutral prompts lean to, and whom they show."""
