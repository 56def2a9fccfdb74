"""Servers on this machine with interfaces beside chat, whose replies a test writes."""

import base64
import io

import numpy as np
from PIL import Image

from chat_server import ChatServer, serving

__all__ = ["ImageServer", "encoded", "image", "png", "serving"]


def png(picture):
    """Return a picture as a PNG file."""
    file = io.BytesIO()
    Image.fromarray(np.asarray(picture, np.uint8)).save(file, "png")
    return file.getvalue()


def encoded(data):
    return base64.b64encode(data).decode()


class ImageServer(ChatServer):
    """Makes images; `reply` gets the body of a request and its number.

    Attributes
    ----------
    files : dict of str to (status, body, headers)
        What is at paths of URLs.
    """

    def __init__(self):
        super().__init__()
        self.files = {}
        self.reply = lambda body, number: (200, image(np.full((4, 5, 3), 9)), {})

    def of(self, body):
        return {"picture": body}

    def get(self, path):
        return self.files[path] if path in self.files else super().get(path)


def image(picture=None, **entry):
    """Return the body of an answer with an image."""
    made = {} if picture is None else {"b64_json": encoded(png(picture))}
    return {"created": 1, "data": [made | entry]}
