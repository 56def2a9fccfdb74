"""Waiting for a generator in another thread: everything in order, and interrupts at once."""

import subprocess
import sys
import threading
import time

from equipoise.evidence import extract_embeddings, pictures_in_folder
from equipoise.evidence.engine import aside
from picture_models import Means, write_pictures


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


INTERRUPTED = """
import os, signal, threading
from equipoise.evidence.engine import aside

def items():
    yield 1
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()

asked = threading.Event()
found = aside(items())
try:
    next(found)
    asked.set()
    next(found)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_does_not_wait_for_what_hangs():
    # In a process of its own, as a user's: an interrupt that comes too early ends what it meets.
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "interrupted\n"


def test_a_process_goes_on_after_the_loop_of_the_engine_was_ended(tmp_path):
    """An interrupt that Daft sees first ends it, and it would wait for it for ever."""
    write_pictures(tmp_path / "photos", 8)
    pictures = pictures_in_folder(tmp_path / "photos")
    first = extract_embeddings(pictures, Means(), tmp_path / "a", part=4)
    from daft import event_loop

    loop = event_loop.LOOP.loop
    loop.call_soon_threadsafe(loop.stop)
    while loop.is_running():
        time.sleep(0.01)
    assert extract_embeddings(pictures, Means(), tmp_path / "b", part=4).table == first.table
