"""Tiny models for audits of generation: a generator that draws colours, and an encoder of them."""

import hashlib

import numpy as np

from equipoise.audits import parse_config
from equipoise.counterfactuals import read_generated
from equipoise.evidence import decode
from equipoise.models import ModelInfo

COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220)}
SIZE = 8


def info(name, family):
    """Return the description of a tiny model."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return ModelInfo(name=name, family=family, weights_sha256=digest, dimension=3)


class Painter:
    """Paints the colour that a prompt names; refuses some, and errs more often in one colour.

    Attributes
    ----------
    calls : int
        Images that were asked for.
    """

    def __init__(self, *, wrong="", share=0.0, refused=""):
        self.info = info(f"painter-{wrong}-{share}-{refused}", "painter")
        self.wrong, self.share, self.refused, self.calls = wrong, share, refused, 0

    def check_control(self):
        """Its attention can be shared: it has none."""

    def tokens(self, prompts):
        """Return words as numbers."""
        return [tuple(len(word) for word in prompt.split()) for prompt in prompts]

    def room(self, sampling):
        """Return how many images fit at once."""
        return 64

    def generate(self, prompts, *, seeds, sampling):
        """Return one image for each prompt, None where it is refused."""
        del sampling
        self.calls += len(prompts)
        return [self._paint(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def generate_with(self, prompts, *, seeds, sampling, attention):
        """Return the same under control."""
        del attention
        return self.generate(prompts, seeds=seeds, sampling=sampling)

    def _paint(self, prompt, seed):
        painted_colour = next(colour for colour in COLOURS if colour in prompt)
        if self.refused and self.refused in prompt:
            return None
        rng = np.random.default_rng([seed % 2**32, *map(ord, prompt)])
        if painted_colour == self.wrong and rng.random() < self.share:
            painted_colour = "green" if painted_colour != "green" else "red"
        noise = rng.integers(-15, 16, (SIZE, SIZE, 3))
        return np.clip(np.array(COLOURS[painted_colour]) + noise, 0, 255).astype(np.uint8)


class Looker:
    """Embeds images as their mean colour, and texts as the colour that they name."""

    def __init__(self):
        self.info = info("looker", "looker")
        self.seen = 0

    def embed_images(self, images):
        """Return mean colours."""
        self.seen += len(images)
        return np.stack([np.asarray(image).mean(axis=(0, 1)) for image in images]).astype(
            np.float32
        )

    def embed_texts(self, texts):
        """Return the colour that each text names, grey where none."""
        named = [[COLOURS[colour] for colour in COLOURS if colour in text] for text in texts]
        return np.array(
            [colours[0] if colours else (9, 9, 9) for colours in named], dtype=np.float32
        )


class Guard:
    """A classifier for which anything blue is unsafe."""

    labels = ("plain", "unsafe")

    def __init__(self):
        self.info = info("guard", "guard")

    def predict_proba(self, images):
        """Return probabilities of both labels."""
        blue = np.array([np.asarray(image).mean(axis=(0, 1)).argmax() == 2 for image in images])
        unsafe = np.where(blue, 0.9, 0.1)
        return np.stack([1 - unsafe, unsafe], axis=1).astype(np.float32)

    def features(self, images):
        """Return mean colours."""
        return Looker().embed_images(images)


def judged(result, store):
    """Return of every generated scene whether it is right, its set, and whether the set is kept.

    A classifier of another world and the pixels decide: both are independent of the pipeline
    and of the encoder of the filters.
    """
    from equipoise.planted.scenes.render import HUES, SUBJECTS
    from tools.planted.judging import judge

    (folder,) = (store / "generations").iterdir()
    generated = read_generated(folder)
    place = {name: index for index, name in enumerate(generated.pictures.ids.tolist())}
    rows = generated.table.to_pylist()
    pixels = [decode(generated.pictures.read(place[row["image_id"]])) for row in rows]
    judgement = judge(np.stack(pixels))
    right = (judgement.subject == [SUBJECTS.index(row["subject"]) for row in rows]) & (
        judgement.hue == [HUES.index(row["hue"]) for row in rows]
    )
    sets = result.tables["filter_sets"].to_pylist()
    rejected_sets = {row["set"] for row in sets if not row["passed"]}
    names = np.array([f"{row['set']}#{row['candidate']}" for row in rows], dtype=object)
    return right, names, np.array([name not in rejected_sets for name in names], dtype=bool)


def scenes(subjects, hues, **generator):
    """Return the configuration of an audit of the scenes' pipeline, filtered by another CLIP."""
    from equipoise.planted.scenes.embed import WEIGHTS

    return parse_config(
        {
            "audit": "generation",
            "captions": {
                "subjects": [*subjects], "attributes": {"hue": [*hues]}, "prefixes": ["a"]
            },
            "generator": {
                "model": "python:equipoise.planted.scenes.diffusion:load_generator",
                # Much is shared, so that much goes wrong.
                "shared": [0.8, 1.0], "shared_self": 0.9, "guidance": 1.0, "seed": 5, **generator,
            },
            "filters": {
                "similarity": {"model": f"hf:{WEIGHTS}/clip-null", "threshold": 0.75},
                "attributes": {"templates": "a {} circle", "thresholds": {"hue": 1.0}},
            },
            "min_group_size": 5,
            "resampling": {"replicates": 100},
        }
    )  # fmt: skip
