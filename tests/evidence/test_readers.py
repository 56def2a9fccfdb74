import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from alone import environment
from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder
from equipoise.evidence.working import Readers, StoppedError
from picture_models import Means


def alive():
    return sum(thread.name == "reader" for thread in threading.enumerate())


def test_a_call_that_takes_long_is_waited_for_unless_the_run_is_stopped():
    with closing(Readers(1, lambda: False)) as readers:
        assert readers.result(readers.submit(lambda: time.sleep(0.4) or "late")) == "late"
    stop, never = threading.Event(), threading.Event()
    begun = time.monotonic()
    with closing(Readers(2, stop.is_set)) as readers:
        blocked = readers.submit(never.wait)
        done = readers.submit(pow, 2, 3)
        assert readers.result(done) == 8
        threading.Timer(0.2, stop.set).start()
        with pytest.raises(StoppedError):
            readers.result(blocked)
        assert readers.result(done) == 8
    assert 0.2 < time.monotonic() - begun < 10
    assert alive() == 1
    never.set()


BLOCKED = """
import sys, threading
from dataclasses import dataclass, replace
from pathlib import Path
from picture_models import Means
from equipoise.evidence import ExtractionSettings, extract_embeddings, pictures_in_folder

class Gone:
    def __init__(self, source):
        self.source = source

    def read(self, place):
        if self.source.where(place).endswith("00007.png"):
            print("blocked", flush=True)
            threading.Event().wait()
        return self.source.read(place)

    def where(self, place):
        return self.source.where(place)

    def take(self, places):
        return Gone(self.source.take(places))

pictures = pictures_in_folder(Path(sys.argv[1]))
pictures = replace(pictures, source=Gone(pictures.source))
try:
    extract_embeddings(pictures, Means(), Path(sys.argv[2]), settings=ExtractionSettings(part=4))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("again", [False, True])
def test_a_file_that_never_answers_holds_up_no_interrupt(photos, store, again):
    """Also where its part exists already and is only checked."""
    if again:
        extract_embeddings(
            pictures_in_folder(photos), Means(), store, settings=ExtractionSettings(part=4)
        )
    call = [sys.executable, "-c", BLOCKED, str(photos), str(store)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout.readline() == "blocked\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert output.splitlines()[-1] == "interrupted"
    assert process.returncode == 0
