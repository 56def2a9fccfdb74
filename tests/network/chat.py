"""A chat-completions server for traced commands, on all addresses of their network."""

import threading
from pathlib import Path

from chat_server import completion, serving
from network.test_served_hosts import ELSEWHERE, PORT


def main():
    """Serve for ever; requests to the model "moved" are redirected to another host."""
    with serving(host="0.0.0.0", port=PORT) as server:
        server.models = [{"id": "tiny"}, {"id": "moved"}]

        def reply(_, number):
            if server.requests[number]["model"] == "moved":
                return 307, {}, {"Location": f"http://{ELSEWHERE}:{PORT}/v1/chat/completions"}
            return 200, completion("blue"), {}

        server.reply = reply
        Path("ready").touch()
        threading.Event().wait()


if __name__ == "__main__":
    main()
