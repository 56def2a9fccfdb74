"""Waiting for a generator in another thread, and for an engine whose loop has ended."""

import threading
import time

from equipoise.evidence import extract_embeddings, pictures_in_folder
from equipoise.evidence.engine import aside
from picture_models import Means


def test_what_is_given_up_is_closed():
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    found = aside(items())
    next(found)
    found.close()
    assert closed.wait(10)


def test_a_process_goes_on_after_the_loop_of_the_engine_was_ended(photos, tmp_path):
    """An interrupt that Daft sees first ends it, and it would wait for it for ever."""
    pictures = pictures_in_folder(photos)
    first = extract_embeddings(pictures, Means(), tmp_path / "a", part=4)
    from daft import event_loop

    loop = event_loop.LOOP.loop
    loop.call_soon_threadsafe(loop.stop)
    while loop.is_running():
        time.sleep(0.01)
    assert extract_embeddings(pictures, Means(), tmp_path / "b", part=4).table == first.table
