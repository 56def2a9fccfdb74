"""A model that paints one colour, and models that see it: what an audit finds can be counted."""

from dataclasses import dataclass, field

import numpy as np

from equipoise.models import ModelInfo, StepImage

COLOURS = {"red": (230, 30, 30), "blue": (30, 30, 230), "green": (30, 230, 30)}
REDNESS = {"fire": 0.9, "flag": 0.5, "sea": 0.1}
"""Share of red among images of each target; the others are blue."""

PROMPTS = {
    "template": "a {}",
    "attributes": {
        "red": ["red thing", "red shape"],
        "blue": ["blue thing", "blue shape"],
        "green": ["green thing", "green shape"],
    },
    "targets": {"things": ["fire", "flag"], "places": ["sea"]},
    "images": {"attributes": 6, "targets": 40},
}


def info(name, **more):
    return ModelInfo(f"python:painted:{name}", "painted", **({"weights_sha256": "0" * 64} | more))


@dataclass
class Painter:
    """Paints the colour that a prompt names; of targets as often as `REDNESS` says."""

    info: ModelInfo = field(default_factory=lambda: info("painter"))
    refuses: str = "nothing at all"
    made: int = 0

    def generate(self, prompts, *, seeds, sampling):
        self.made += len(prompts)
        return [self.paint(*pair, sampling.guidance) for pair in zip(prompts, seeds, strict=True)]

    def paint(self, prompt, seed, guidance):
        rng = np.random.default_rng(seed)
        if self.refuses in prompt and rng.random() < 0.25:
            return None
        named = [name for name in COLOURS if name in prompt]
        share = next((redness for word, redness in REDNESS.items() if word in prompt), 0.5)
        share = min(max(0.5 + (share - 0.5) * guidance, 0.0), 1.0)
        colour = named[0] if named else "red" if rng.random() < share else "blue"
        noise = rng.integers(-25, 26, (4, 4, 3))
        return np.asarray(np.clip(np.array(COLOURS[colour]) + noise, 0, 255).astype(np.uint8))


@dataclass
class SteppedPainter(Painter):
    """Paints over a grey noise that fades; `REDNESS` decides from a step on, before it a coin.

    Attributes
    ----------
    start : int or None
        First step at which the colour of a target is biased; None: a coin decides at all.
    """

    start: int | None = None

    def __post_init__(self):
        self.info = info(f"stepped painter {self.start}")

    def generate(self, prompts, *, seeds, sampling):
        steps = self.generate_steps(prompts, seeds=seeds, sampling=sampling, at=())
        return [images[-1].image for images in steps]

    def generate_steps(self, prompts, *, seeds, sampling, at):
        self.made += len(prompts)
        return [
            tuple(self.paint_step(prompt, seed, step, sampling) for step in (*at, sampling.steps))
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]

    def paint_step(self, prompt, seed, step, sampling):
        fair = 0.0 if self.start is None or step < self.start else sampling.guidance
        colour = self.paint(prompt, seed, fair).astype(float)
        rng, signal = np.random.default_rng([seed % 2**32, step]), step / sampling.steps
        clean = signal * colour + (1 - signal) * (128 + rng.normal(0, 20, colour.shape))
        image = np.clip(clean, 0, 255).astype(np.uint8)
        return StepImage(image, (image / 127.5 - 1.0).transpose(2, 0, 1).astype(np.float32))


def painter(*, device, dtype):
    """What `python:painted:painter` loads."""
    return Painter()


@dataclass
class Seer:
    """Embeds an image as its mean colour, and a text as the colours that it makes one think of."""

    info: ModelInfo = field(
        default_factory=lambda: info("seer", dimension=4, scale=20.0, bias=None)
    )
    tint: float = 0.0

    def embed_images(self, images):
        rows = [[*image.reshape(-1, 3).mean(axis=0) / 255.0, 0.3 + self.tint] for image in images]
        return np.array(rows, dtype=np.float32)

    def embed_texts(self, texts):
        rows = []
        for text in texts:
            named = [np.array(rgb) / 255.0 for name, rgb in COLOURS.items() if name in text]
            red = next((redness for word, redness in REDNESS.items() if word in text), 0.5)
            leaning = np.array([red, 0.3, 1 - red]) * 0.5
            rows.append([*(named[0] if named else leaning), 0.3])
        return np.array(rows, dtype=np.float32)


@dataclass
class Teller:
    """Answers a question with the colour, and wrongly of one red image in five."""

    info: ModelInfo = field(default_factory=lambda: info("teller"))

    def answer(self, images, question):
        return [self.say(image) for image in images]

    def say(self, image):
        mean = image.reshape(-1, 3).mean(axis=0)
        odd = int(image.sum()) % 5 == 0
        if int(image.sum()) % 19 == 0:
            return "I do not know."
        return "Blue." if mean[2] > mean[0] or odd else " it is RED"


def audit_values(**changes):
    """A configuration with the painter and the seer."""
    values = {
        "audit": "text_to_image",
        "prompts": PROMPTS,
        "generators": {"painter": {"model": Painter(), "guidance": 1.0, "steps": 1}},
        "models": {"seer": {"model": Seer()}},
        "shares": [
            {"of": "colour", "model": "seer", "classes": {"red": ["red"], "blue": ["blue"]}}
        ],
        "resampling": {"replicates": 100, "seed": 3},
    }
    return values | changes
