"""A chat-completions server on this machine, whose replies a test writes."""

import base64
import io
import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from PIL import Image


def completion(text="yes", *, reason="stop", model="tiny-2026", **message):
    """Return the body of a chat completion."""
    return {
        "model": model,
        "choices": [{"finish_reason": reason, "message": {"content": text, **message}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1},
    }


class ChatServer:
    """Answers by `reply`, a function of the picture's array and the number of the request.

    Attributes
    ----------
    reply : callable
        Returns (status, body, headers), or None to cut the connection; a body may be bytes, or a
        list of bytes that are sent a tenth of a second apart.
    requests : list of mapping
        Bodies in the order in which they came, with the picture decoded under "picture".
    headers : list of mapping
    trouble : list of (status, body, headers)
        What the next requests for the list of models get in its place.
    drip : bytes or None
        What is sent for ever, a piece each tenth of a second, in place of replies.
    """

    def __init__(self):
        self.trouble, self.drip = [], None
        self.reply = lambda picture, number: (200, completion(), {})
        self.models = [{"id": "tiny", "created": 1}, {"id": "other"}]
        self.requests, self.headers = [], []
        self.lock, self.under_way, self.most_under_way = threading.Lock(), 0, 0

    def of(self, body):
        picture = body["messages"][0]["content"][0]["image_url"]["url"]
        data = base64.b64decode(picture.removeprefix("data:image/png;base64,"))
        return np.asarray(Image.open(io.BytesIO(data)))

    def get(self, path):
        """Answer a GET: the list of models."""
        return self.trouble.pop(0) if self.trouble else (200, {"data": self.models}, {})


class Handler(BaseHTTPRequestHandler):
    """Answers requests to a `ChatServer`.

    Attributes
    ----------
    chat : ChatServer
    """

    protocol_version = "HTTP/1.1"
    chat: ChatServer

    def log_message(self, *_):
        """Write nothing."""

    def handle(self):
        """Handle requests until the connection ends, however it does."""
        with suppress(ConnectionError):
            super().handle()

    def send(self, status, body, headers):
        """Send a reply."""
        pieces = body if isinstance(body, list) else [
            body if isinstance(body, bytes) else json.dumps(body).encode()
        ]  # fmt: skip
        self.send_response(status)
        length = str(sum(map(len, pieces)))
        for name, value in {"Content-Length": length, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
            time.sleep(0.1 if len(pieces) > 1 else 0.0)

    def send_for_ever(self):
        """Send a reply that has no end."""
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while self.chat.drip is not None:
            self.wfile.write(self.chat.drip)
            time.sleep(0.1)

    def do_GET(self):
        """Answer a GET as the server does."""
        self.chat.headers.append(dict(self.headers))
        self.send(*self.chat.get(self.path))

    def do_POST(self):
        """Answer about a picture."""
        chat, body = self.chat, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with chat.lock:
            chat.under_way += 1
            chat.most_under_way = max(chat.under_way, chat.most_under_way)
            number, picture = len(chat.requests), chat.of(body)
            chat.requests.append({**body, "picture": picture})
            chat.headers.append(dict(self.headers))
        try:
            reply = chat.reply(picture, number)
            if chat.drip is not None:
                self.send_for_ever()
            elif reply is None:
                self.close_connection = True
                self.connection.close()
            else:
                self.send(*reply)
        except OSError:
            pass
        finally:
            with chat.lock:
                chat.under_way -= 1


@contextmanager
def serving(server=None, *, host="127.0.0.1", port=0):
    """Run a server; yields it with its `url`."""
    server = server or ChatServer()
    handler = type("HandlerOfServer", (Handler,), {"chat": server})
    http = ThreadingHTTPServer((host, port), handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
