"""Servers on this machine with interfaces beside chat, whose replies a test writes."""

import base64
import io

import numpy as np
from PIL import Image

from chat_server import ChatServer, serving

__all__ = ["ImageServer", "VectorServer", "encoded", "image", "png", "serving"]


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
        return body

    def get(self, path):
        return self.files[path] if path in self.files else super().get(path)


def image(picture=None, **entry):
    """Return the body of an answer with an image."""
    made = {} if picture is None else {"b64_json": encoded(png(picture))}
    return {"created": 1, "data": [made | entry]}


class VectorServer(ChatServer):
    """Embeds texts and pictures with a model that a test has.

    Attributes
    ----------
    model : DualEncoder
    form : str
        How it takes pictures: "messages", "input", or "" for no pictures.
    encoding : str
        Of its vectors: "float" or "base64".
    trouble_of : callable
        From the body of a request and its number to a reply in its place, or None.
    """

    def __init__(self, model):
        super().__init__()
        self.model, self.form, self.encoding = model, "messages", "float"
        self.trouble_of = lambda body, number: None
        self.reply = lambda body, number: self.trouble_of(body, number) or (*self.embed(body), {})

    def of(self, body):
        return body

    def embed(self, body):
        inputs = body.get("input", [])
        if all(isinstance(entry, str) for entry in inputs) and inputs:
            return 200, self.vectors(self.model.embed_texts(inputs))
        pictures = self.pictures(body)
        if pictures is None:
            return 422, {"error": {"message": "input: expected texts"}}
        return 200, self.vectors(self.model.embed_images(pictures))

    def pictures(self, body):
        """Return the pictures of a request; None of another form."""
        if self.form == "messages" and "messages" in body:
            (message,) = body["messages"]
            (part,) = message["content"]
            return [decoded(part["image_url"]["url"])]
        if self.form == "input" and "input" in body:
            return [decoded(entry["image"]) for entry in body["input"]]
        return None

    def vectors(self, rows):
        """Return an answer whose entries are in another order than their index."""
        entries = [
            {"object": "embedding", "index": index, "embedding": self.written(row)}
            for index, row in enumerate(np.asarray(rows, "<f4"))
        ]
        return {"object": "list", "data": entries[::-1], "model": "tiny-2026"}

    def written(self, row):
        return encoded(row.tobytes()) if self.encoding == "base64" else row.tolist()


def decoded(url):
    data = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)))
