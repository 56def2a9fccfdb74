"""Shares of classes among images, corrected for the errors of what named the classes."""
