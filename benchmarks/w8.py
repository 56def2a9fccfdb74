"""W8: counterfactual fine-tuning of a CLIP of the size of ViT-B/32 on a GPU, in bfloat16.

Seconds for 1,000 pairs of an image and a caption, in batches of 32 from counterfactual sets of 8:
the whole step, preparing images included, from pixels in memory to changed weights. The model is
CLIP's ViT-B/32 with both towers at full size and random weights. The peer is the loop that a script
has: transformers' processor, the loss of CLIPModel, AdamW, the same autocast. Without a GPU there
is no row.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks import harness
from benchmarks.harness import Row, alternate

PAIRS, SET, BATCH = 1000, 8, 32
SIDE = 256
# Multiplications and additions for a pair: 12 layers of either tower, once forward, twice back.
WORK = 3 * 2 * 12 * (12 * 50 * 768**2 + 12 * 77 * 512**2)


def rows():
    """Time fine-tuning where there is a GPU."""
    import torch

    if not torch.cuda.is_available():
        return
    with tempfile.TemporaryDirectory() as folder:
        clip = _checkpoint(Path(folder) / "clip")
        images = np.random.default_rng(0).integers(0, 256, (PAIRS, SIDE, SIDE, 3), dtype=np.uint8)
        captions = [f"a photo of a {place % 26} {place}" for place in range(PAIRS)]
        ours, peer = _ours(clip, images, captions), _peer(clip, images, captions)
        seconds, peer_seconds = alternate(ours, peer, repeats=3)
    yield Row(
        workload="W8",
        what="counterfactual fine-tuning, ViT-B/32, bfloat16",
        size=f"{PAIRS:,} pairs, {SIDE} × {SIDE} pixels",
        peer="transformers: processor, CLIPModel, AdamW",
        peer_seconds=peer_seconds,
        seconds=seconds,
        goal=None,
        limit_seconds=PAIRS * WORK / _rate(torch),
        limit="the products of both towers, at the rate of a large product in bfloat16",
        memory_mb=None,
        note=torch.cuda.get_device_name(),
    )


def _checkpoint(folder):
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer

    torch.manual_seed(0)
    letters = [chr(code) for code in range(33, 127)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{one}</w>" for one in letters)]
    tokenizer = CLIPTokenizer(vocab={word: i for i, word in enumerate(words)}, merges=[])
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    model = CLIPModel(CLIPConfig(text_config={"vocab_size": len(words), **ends}))
    for part in (model, CLIPImageProcessor(), tokenizer):
        part.save_pretrained(folder)
    return folder


def _ours(clip, images, captions):
    import torch

    from equipoise.mitigate import Contrastive, ImageSets
    from equipoise.mitigate.contrastive import Batches
    from equipoise.mitigate.trainable import trainable
    from equipoise.models import load_model

    recipe = Contrastive(batch=BATCH)
    subject = trainable(load_model(f"hf:{clip}", device="cuda", dtype="float32"))
    weights = [*subject.weights("both").values()]
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=0.0)
    names = np.array([f"{place // SET:04d}" for place in range(PAIRS)], dtype=object)
    sets = ImageSets(images, names, names, np.array(captions, dtype=object), {})
    batches = Batches(sets, None, recipe, 0)

    def run():
        for step in range(batches.in_epoch):
            optimizer.zero_grad(set_to_none=True)
            recipe._loss(subject, batches.of(step), ()).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
        torch.cuda.synchronize()

    return run


def _peer(clip, images, captions):
    import torch
    from transformers import AutoProcessor, CLIPModel

    model = CLIPModel.from_pretrained(clip).cuda().train()
    processor = AutoProcessor.from_pretrained(clip)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-6, weight_decay=0.0)

    def run():
        for start in range(0, PAIRS, BATCH):
            some = slice(start, start + BATCH)
            inputs = processor(
                images=[*images[some]], text=captions[some], padding=True, return_tensors="pt"
            )
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(**inputs.to("cuda"), return_loss=True).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        torch.cuda.synchronize()

    return run


def _rate(torch):
    """Return products and sums a second of a large matrix product in bfloat16."""
    side = 8192
    one = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    one @ one
    start.record()
    for _ in range(10):
        one @ one
    end.record()
    torch.cuda.synchronize()
    return float(10 * 2 * side**3 / (start.elapsed_time(end) / 1e3))


if __name__ == "__main__":
    harness.main(rows)
