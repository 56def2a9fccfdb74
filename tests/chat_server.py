"""A chat-completions server on this machine, whose replies a test writes."""

import base64
import io
import json
import threading
import time
from contextlib import contextmanager
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
        Returns (status, body, headers), or None to cut the connection; a body may be bytes.
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


@contextmanager
def serving(server=None):
    """Run a server; yields it with its `url`."""
    server = server or ChatServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def send(self, status, body, headers):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            server.headers.append(dict(self.headers))
            self.send(*server.get(self.path))

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.under_way += 1
                server.most_under_way = max(server.under_way, server.most_under_way)
                number = len(server.requests)
                picture = server.of(body)
                server.requests.append({**body, "picture": picture})
                server.headers.append(dict(self.headers))
            try:
                reply = server.reply(picture, number)
                if server.drip is not None:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000000")
                    self.end_headers()
                    while server.drip is not None:
                        self.wfile.write(server.drip)
                        time.sleep(0.1)
                elif reply is None:
                    self.close_connection = True
                    self.connection.close()
                else:
                    self.send(*reply)
            except OSError:
                pass
            finally:
                with server.lock:
                    server.under_way -= 1

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
