"""Images of the shipped text-to-image model of the scenes, made once for all tests of a worker.

On noise that was not looked at while the model was made. Tests of these images are in the group
"planted pipeline", so that one worker makes them.
"""

from functools import cache, partial

import torch

from equipoise.planted.scenes.diffusion import WEIGHTS
from tools.planted.diffusion_measures import leave_open, tell
from tools.planted.pipeline import ask, load_pipeline

FRESH = 41
GUIDED = (1.5, 3.0)

torch.set_num_threads(1)


@cache
def told():
    """Return images of prompts that say what to show."""
    return tell(load_pipeline(), per_cell=2, seed=FRESH)


@cache
def neutral():
    """Return images of prompts that leave hue and frame open, by guidance."""
    sizes = {1.0: 96} | dict.fromkeys(GUIDED, 12)
    questions = [
        partial(leave_open, guidance=guidance, per_subject=n, seed=FRESH)
        for guidance, n in sizes.items()
    ]
    return dict(zip(sizes, ask(WEIGHTS, questions), strict=True))
