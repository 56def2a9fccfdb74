"""W7: images to vectors on a CPU: a ViT-B/32, JPEG files of 640 × 480 pixels.

The model is CLIP's ViT-B/32 with random weights (a text tower of one layer beside it), written to a
folder and loaded by `load_model`; what it computes does not depend on what it learned. Peers are
what a script does: Pillow, transformers' image processor on Pillow, transformers' model on torch in
float32. Ours is what `load_model` chooses, in float32 and in bfloat16 (on processors that have it),
decoding as the extraction does. Model and whole way have every core on both sides, preparing has
one. Ours also cuts to the centre and puts on the scale where Pillow's row only decodes and resizes.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np

from benchmarks import harness
from benchmarks.harness import Row, alternate, compared, sizes, timed
from equipoise.evidence import Decoding
from equipoise.evidence.pictures import pixels as decode
from equipoise.evidence.pictures import quiet
from equipoise.models import load_model
from equipoise.models.runtimes import has_bfloat16
from equipoise.stats.threads import threads

RULES = Decoding()

TORCH = "transformers on torch, float32"
PILLOW = "Pillow: decode, resize"
WHOLE = "Pillow, transformers on torch, float32"
PRODUCTS = "the products of the tower, at the rate of a large matrix product"
NO_BFLOAT16 = "skipped: this processor has neither avx512_bf16 nor amx_bf16"
# Multiplications and additions for an image: 12 layers on 50 places, the patches, the projection.
PLACES, WIDTH, LAYERS = 50, 768, 12
WORK = 2 * (LAYERS * (12 * PLACES * WIDTH**2 + 2 * PLACES**2 * WIDTH) + 49 * 3072 * WIDTH)


def checkpoint(folder):
    """Write a CLIP with a ViT-B/32 of random weights, as `save_pretrained` does."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    torch.manual_seed(0)
    words = ["<|startoftext|>", "<|endoftext|>", "a", "a</w>"]
    tokenizer = CLIPTokenizer(vocab={word: i for i, word in enumerate(words)}, merges=[])
    text = {"num_hidden_layers": 1, "vocab_size": len(words), "bos_token_id": 0, "eos_token_id": 1}
    model = CLIPModel(CLIPConfig(text_config=text | {"pad_token_id": 1}))
    for part in (model, CLIPImageProcessorPil(), tokenizer):
        part.save_pretrained(folder)
    return folder


def photographs(n):
    """JPEG files of 640 × 480 pixels: smooth shapes and some noise, about 100 kB each."""
    from PIL import Image

    rng = np.random.default_rng(0)
    files = []
    for _ in range(n):
        shapes = Image.fromarray(rng.integers(0, 256, (31, 41, 3), dtype=np.uint8))
        smooth = np.asarray(shapes.resize((640, 480), Image.Resampling.BICUBIC)).astype(np.int64)
        noisy = np.clip(smooth + rng.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)
        file = BytesIO()
        Image.fromarray(noisy).save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def by_pillow(files):
    """Pictures, decoded by Pillow."""
    from PIL import Image

    return [Image.open(BytesIO(file)).convert("RGB") for file in files]


def resized_by_pillow(files):
    """Pictures, decoded and resized by Pillow."""
    from PIL import Image

    return [picture.resize((298, 224), Image.Resampling.BICUBIC) for picture in by_pillow(files)]


def decoded(files, workers=1):
    """Pictures, decoded as the extraction does; one worker is the caller's thread, as of peers."""
    with quiet(), ThreadPoolExecutor(workers) as pool:
        spread = pool.map if workers > 1 else map
        return [*spread(lambda file: decode(file, RULES), files)]


class Script:
    """What a script would do: the library's own calls."""

    def __init__(self, folder):
        from transformers import CLIPImageProcessorPil, CLIPModel

        self.processor = CLIPImageProcessorPil.from_pretrained(folder)
        self.model = CLIPModel.from_pretrained(folder).eval()

    def pixels(self, files):
        """Return what the model sees."""
        return self.processor(images=by_pillow(files), return_tensors="pt")["pixel_values"]

    def vectors(self, pixels):
        """Return the model's vectors of batches of 32."""
        import torch

        with torch.inference_mode():
            parts = [
                self.model.get_image_features(pixel_values=batch).pooler_output.numpy()
                for batch in pixels.split(32)
            ]
        return np.concatenate(parts)


def cosine(a, b):
    """Return the least cosine of rows."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(((a.astype(np.float64) * b).sum(axis=1) / norms).min())


def tower_of(model, pixels):
    """Return a loaded model's vectors of batches of 32, of pixels that are prepared."""
    parts = [model.tower.run({"pixel_values": batch})[0].numpy() for batch in pixels.split(32)]
    return np.concatenate(parts)


def limit(n, dtype):
    """Seconds of the products for n images, at the rate of one large product on every core."""
    import torch

    square = torch.ones((2048, 2048), dtype=getattr(torch, dtype))
    calls = [lambda: square @ square]
    if dtype == "float32":  # numpy's library may be the quicker one
        array = square.numpy()
        calls.append(lambda: array @ array)
    once = min(timed(call, repeats=10, blas_threads=threads()) for call in calls)
    return n * WORK / (2 * 2048**3) * once


def rows():
    """Yield the rows of the workload."""
    import torch

    torch.set_num_threads(threads())
    with tempfile.TemporaryDirectory() as folder:
        model_folder = checkpoint(Path(folder))
        script = Script(model_folder)
        models = {"float32": load_model(f"hf:{model_folder}", device="cpu")}
        if has_bfloat16():
            models["bfloat16"] = load_model(f"hf:{model_folder}", device="cpu", dtype="bfloat16")
        for n in sizes(16, 32, 64):
            files = photographs(n)
            yield from of_model(script, models, files)
            yield from of_preparing(script, models["float32"].prepare, files)
            yield from of_all(script, models, files)
        if not has_bfloat16():
            yield Row("W7", "image vectors, bfloat16", "ViT-B/32", TORCH, float("nan"),
                      float("nan"), note=NO_BFLOAT16)  # fmt: skip


def of_model(script, models, files):
    """Yield the model alone, on images that are prepared."""
    pixels, n = script.pixels(files), len(files)
    for dtype, goal, least in (("float32", 2.0, 0.999999), ("bfloat16", 4.0, 0.9999)):
        if dtype not in models:
            continue
        peer = (TORCH, partial(script.vectors, pixels), goal)
        yield from in_parallel(
            partial(tower_of, models[dtype], pixels), peer, least,
            f"image vectors, {dtype}", f"{n} images", limit_seconds=limit(n, dtype),
            limit=PRODUCTS, note=f"ours runs on {models[dtype].info.backend}", n=n,
        )  # fmt: skip


def of_preparing(script, prepare, files):
    """Yield decoding and preparing, on one core."""
    import torch

    def ours():
        return prepare(decoded(files))["pixel_values"]

    std = np.array(script.processor.image_std)[:, None, None] * 255
    levels = np.abs(ours().numpy() - script.pixels(files).numpy()) * std
    np.testing.assert_array_less(levels.max(), 1.001, err_msg="grey levels apart from Pillow's")
    torch.set_num_threads(1)
    mine, theirs = alternate(ours, partial(resized_by_pillow, files))
    torch.set_num_threads(threads())
    size = f"640 × 480, {len(files)} files, one core"
    yield Row("W7", "JPEG to pixels", size, PILLOW, theirs, mine, goal=2.0, n=len(files))


def of_all(script, models, files):
    """Yield the whole way from files to vectors."""

    def peer():
        return script.vectors(script.pixels(files))

    for dtype, model in models.items():

        def ours(model=model):
            return np.asarray(model.embed_images(decoded(files, threads())))

        # A grey level here and there is told apart by a model of random weights.
        goal = 4.0 if dtype == [*models][-1] else None
        yield from in_parallel(
            ours, (WHOLE, peer, goal), 0.9995, f"JPEG to vectors, {dtype}", f"{len(files)} files",
            n=len(files),
        )  # fmt: skip


def in_parallel(ours, peer, least, label, size, **about):
    """Yield the row of two calls that each have every core, and give vectors of this cosine."""

    def check(vectors, expected):
        np.testing.assert_array_less(least, cosine(vectors, expected), err_msg="cosine with torch")

    return compared(
        ours, [peer], check, blas_threads=threads(), memory=False,
        workload="W7", what=label, size=f"ViT-B/32, {size}", **about,
    )  # fmt: skip


if __name__ == "__main__":
    harness.main(rows)
