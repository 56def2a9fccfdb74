"""Requests to the pages of a run, as a browser sends them."""

import asyncio
from html.parser import HTMLParser
from urllib.parse import urlsplit

HOST, TOKEN = "127.0.0.1:4321", "a token"
COOKIE = f"equipoise_review_4321={TOKEN}"


def ask(app, path, *, host=HOST, cookie=COOKIE, origin=None, method="GET", body="", leaves=False):
    """Return the status, headers and body of a request, whose client may leave before its end."""
    split = urlsplit(path)
    headers = {"host": host, "cookie": cookie, "origin": origin}
    if body:
        headers["content-length"] = str(len(body))
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http",
        "path": split.path, "raw_path": split.path.encode(), "root_path": "",
        "query_string": split.query.encode(), "client": ("127.0.0.1", 1), "server": None,
        "headers": [(k.encode(), v.encode()) for k, v in headers.items() if v is not None],
    }  # fmt: skip
    sent = []

    async def receive():
        if leaves:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    response_headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return (
        sent[0]["status"],
        response_headers,
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


class Links(HTMLParser):
    """Addresses on a page, and its scripts that are not files."""

    def __init__(self, page):
        super().__init__()
        self.links, self.pictures, self.inline = [], [], 0
        self.feed(page.decode())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "a":
            self.links.append(attrs["href"])
        if tag == "img":
            self.pictures.append(attrs["src"])
        self.inline += tag == "script" and "src" not in attrs
