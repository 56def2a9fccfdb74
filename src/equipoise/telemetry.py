"""Switches that turn off usage reports of the libraries that equipoise loads."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCHES = {
    # onnxruntime looks for it once, when its native library loads.
    "ORT_DISABLE_TELEMETRY": "1",
    # huggingface_hub and what downloads with it: hf_xet, transformers, diffusers, timm, open_clip.
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A convention for all other libraries.
    "DO_NOT_TRACK": "1",
}
"""Variables that switch reports off, in this process and in those that it starts."""
REPORTERS = ("openvino_telemetry",)
"""Packages whose only work is to report, and that no variable switches off."""


def switch_off() -> None:
    """Switch off the reports that a variable controls.

    `import equipoise` calls it, before any library is loaded. A worker on another machine imports
    equipoise, too.
    """
    os.environ.update(SWITCHES)


@contextmanager
def without_reporters() -> Iterator[None]:
    """Hide packages that only report usage while another package is imported."""
    before = {name: sys.modules[name] for name in REPORTERS if name in sys.modules}
    sys.modules.update(dict.fromkeys(REPORTERS))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in REPORTERS:
            del sys.modules[name]
        sys.modules.update(before)
