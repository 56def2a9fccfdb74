"""Images of the shipped text-to-image model of the scenes, made once for all tests of a worker.

On noise that was not looked at while the model was made. Tests of these images are in the group
"planted pipeline", so that one worker makes them.
"""

from functools import cache, partial

import torch

from equipoise.stats.threads import each
from tools.planted.diffusion_measures import leave_open, tell
from tools.planted.pipeline import load_pipeline

FRESH = 41
GUIDED = (1.5, 3.0)

torch.set_num_threads(1)


@cache
def made():
    """Return images of prompts that say what to show, and those of open ones by guidance."""
    openly = partial(leave_open, seed=FRESH)
    wanted = [
        partial(tell, per_cell=2, seed=FRESH),
        partial(openly, guidance=1.0, per_subject=96),
        *(partial(openly, guidance=guidance, per_subject=12) for guidance in GUIDED),
    ]
    # Loaded here: threads that import diffusers at once find it half imported.
    pipelines = [load_pipeline() for _ in wanted]
    told, plain, *guided = each(
        lambda one: one[0](one[1]), list(zip(wanted, pipelines, strict=True))
    )
    return told, {1.0: plain, **dict(zip(GUIDED, guided, strict=True))}
