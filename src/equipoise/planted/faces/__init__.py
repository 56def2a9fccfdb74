"""Drawn faces with a tool beside them: who holds which tool is up to the user."""

from equipoise.planted.faces.render import BOX, GROUPS, IMAGE_SIZE, TOOLS, Drawn, draw_faces

__all__ = ["BOX", "GROUPS", "IMAGE_SIZE", "TOOLS", "Drawn", "draw_faces"]
