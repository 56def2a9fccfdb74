"""Metrics of one number per image, subject or region: shares, rejections, trends, alignment."""
