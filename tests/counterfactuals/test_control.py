"""Prompt-to-Prompt: which maps are shared, for how long, and what stays as the model makes it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion_checkpoints import (
    flux,
    stable_diffusion,
    stable_diffusion_3,
    stable_diffusion_xl,
)
from equipoise.counterfactuals.control import SharedAttention, aligned, common, generate_controlled
from equipoise.counterfactuals.parts import Candidate, Group
from equipoise.models import Sampling, load_generator

SAMPLING = Sampling(steps=4, guidance=4.0)
PROMPTS = ("a red dog", "a blue dog", "an old cat")


def candidate(prompts, seed, base=0, shared=0.8, shared_self=0.0):
    group = Group("", prompts, prompts, (None,) * len(prompts))
    return Candidate(group, 0, seed, base, shared, shared_self)


@pytest.mark.parametrize(
    ("base", "other", "places"),
    [
        ((1, 2, 3, 0, 0), (1, 9, 3, 0, 0), (0, -1, 2, 3, 4)),  # a word swapped
        # The end (5) is that of the base; padding stays at its place.
        ((1, 2, 3, 5, 5, 5), (1, 8, 9, 3, 5, 5), (0, -1, -1, 2, 3, 5)),
        ((1, 8, 9, 3, 5, 5), (1, 2, 3, 5, 5, 5), (0, -1, 3, 4, 4, 5)),
        ((0, 0, 0), (0, 0, 0), (0, 1, 2)),
    ],
)
def test_words_in_common_are_aligned(base, other, places):
    assert aligned(base, other) == places


def longest(base, other):
    """Length of the longest common subsequence, by trying all."""
    for size in range(len(other), 0, -1):
        for chosen in combinations(other, size):
            remaining = iter(base)
            if all(any(token == two for two in remaining) for token in chosen):
                return size
    return 0


TOKENS = st.lists(st.integers(0, 3), min_size=6, max_size=6).map(tuple)


@given(TOKENS, TOKENS)
def test_as_many_are_aligned_as_can_be(base, other):
    alignment = common(base, other)
    aligned = [place for place in alignment if place >= 0]
    assert aligned == sorted({*aligned})
    assert all(place < 0 or base[place] == other[at] for at, place in enumerate(alignment))
    assert len(aligned) == longest(base, other)


def attention_to(**options):
    import torch
    from diffusers.models.attention_processor import Attention

    torch.manual_seed(3)
    return Attention(query_dim=8, heads=2, dim_head=4, **options).eval()


def plainly(attention, hidden, context, mix):
    """Attention step by step, image by image and head by head, with maps that `mix` changes."""
    import torch

    maps = []
    for image in range(len(hidden)):
        query, key = attention.to_q(hidden[image]), attention.to_k(context[image])
        heads = [
            torch.softmax(query[:, cut] @ key[:, cut].T / 2.0, dim=-1)
            for cut in (slice(0, 4), slice(4, 8))
        ]
        maps.append(torch.stack(heads))
    out = []
    for image, weights in enumerate(mix(maps)):
        value = attention.to_v(context[image])
        mixed = torch.cat([weights[0] @ value[:, :4], weights[1] @ value[:, 4:]], dim=1)
        out.append(attention.to_out[0](mixed))
    return torch.stack(out)


def under(control, attention):
    """A layer whose queries, keys and values the control sees, head by head."""

    def heads(states):
        return states.unflatten(-1, (2, 4)).transpose(1, 2)

    def run(hidden, context=None):
        all_images = slice(None)
        source = hidden if context is None else context
        query, key, value = (
            heads(projection(states))
            for projection, states in zip(
                (attention.to_q, attention.to_k, attention.to_v),
                (hidden, source, source),
                strict=True,
            )
        )
        mixed = (query @ key.transpose(-1, -2) / 2.0).softmax(dim=-1) @ value
        to = (
            {"texts": None, "to_images": all_images}
            if context is None
            else {"texts": all_images, "to_images": None}
        )
        control.mix(query, key, value, mixed, images=all_images, **to)
        return attention.to_out[0](mixed.transpose(1, 2).flatten(2))

    return run


def test_maps_of_shared_words_come_from_the_base():
    import torch

    attention = attention_to(cross_attention_dim=6)
    tokens = [(1, 5, 2, 0), (1, 6, 2, 0), (1, 7, 8, 2), (1, 2, 0, 0), (1, 9, 0, 0)]
    control = SharedAttention(
        [candidate(("",) * 3, 0, 1, 0.5), candidate(("",) * 2, 0, 0, 1.0)], tokens
    )
    control.begin(4)
    hidden, context = torch.randn(10, 9, 8), torch.randn(10, 4, 6)  # half of it without prompts
    controlled = under(control, attention)

    def mix(maps, first):
        mixed = [weights.clone() for weights in maps]
        if first:
            mixed[5][..., [0, 2, 3]] = maps[6][..., [0, 2, 3]]
            mixed[7][..., [0, 3]] = maps[6][..., [0, 2]]
        mixed[9][..., [0, 2, 3]] = maps[8][..., [0, 2, 3]]
        return mixed

    with torch.no_grad():
        for step in range(4):
            output = controlled(hidden, context)
            expected = plainly(attention, hidden, context, lambda maps, s=step: mix(maps, s < 2))
            torch.testing.assert_close(output, expected)
            control.advance()
        after = controlled(hidden, context)
        torch.testing.assert_close(after, plainly(attention, hidden, context, lambda maps: maps))


def test_self_attention_maps_come_from_the_base():
    import torch

    attention = attention_to()
    control = SharedAttention([candidate(("", ""), 0, 1, 0.0, 1.0)], [(0,), (0,)])
    control.begin(1)
    controlled = under(control, attention)
    hidden = torch.randn(4, 9, 8)
    with torch.no_grad():
        output = controlled(hidden)
        shared = plainly(attention, hidden, hidden, lambda maps: [*maps[:2], maps[3], maps[3]])
        torch.testing.assert_close(output, shared)
        fine = torch.randn(4, 17 * 17, 8)  # too fine to be shared
        torch.testing.assert_close(controlled(fine), attention(fine))
        every = replace(candidate(("", ""), 0, 1, 0.0, 1.0), places=None)
        control = SharedAttention([every], [(0,), (0,)])
        control.begin(1)
        shared = plainly(attention, fine, fine, lambda maps: [*maps[:2], maps[3], maps[3]])
        torch.testing.assert_close(under(control, attention)(fine), shared)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = stable_diffusion(tmp_path_factory.mktemp("control") / "sd")
    return load_generator(f"diffusers:{folder}", device="cpu")


def generate_images(model, *sets, sampling=SAMPLING):
    images = iter(generate_controlled(model, sets, sampling))
    return [np.stack([next(images) for _ in range(len(image_set))]) for image_set in sets]


def plain(model, seed, sampling=SAMPLING):
    return np.stack(model.generate(PROMPTS, seeds=[seed] * 3, sampling=sampling))


def largest_changes(images, other):
    return np.abs(images.astype(int) - other).max(axis=(1, 2, 3)).tolist()


@pytest.mark.parametrize("guidance", [1.0, 4.0])
@pytest.mark.parametrize("base", [0, 2])
def test_the_base_equals_the_image_without_control(base, guidance, model):
    sampling = Sampling(steps=4, guidance=guidance)
    alone = plain(model, 5, sampling)
    images = generate_images(model, candidate(PROMPTS, 5, base, 1.0, 1.0), sampling=sampling)[0]
    changes = largest_changes(images, alone)
    assert changes[base] <= 1
    distances = np.abs(images.astype(int) - alone).mean(axis=(1, 2, 3))
    assert (
        min(distance for place, distance in enumerate(distances) if place != base)
        > 10 * distances[base]
    )


def test_sets_of_a_batch_do_not_meet(model):
    sets = [
        candidate(PROMPTS, 5, 0, 0.8, 0.4),
        candidate(PROMPTS[:2], 6, 1, 0.2),
        candidate(PROMPTS, 5, 2, 0.3, 1.0),
    ]
    together = generate_images(model, *sets)
    for image_set, images in zip(sets, together, strict=True):
        assert max(largest_changes(images, generate_images(model, image_set)[0])) <= 1


@pytest.fixture(scope="module", params=[stable_diffusion_xl, stable_diffusion_3, flux])
def other(request, tmp_path_factory):
    folder = request.param(tmp_path_factory.mktemp("control") / request.param.__name__)
    return load_generator(f"diffusers:{folder}", device="cpu")


def test_sets_of_other_families_are_made_under_control(other):
    other.check_control()
    few = Sampling(steps=2, guidance=4.0)
    alone = plain(other, 5, few)
    # One noise alone is what the model makes, and so is the base of a set.
    assert (
        max(
            largest_changes(
                generate_images(other, candidate(PROMPTS, 5, shared=0.0), sampling=few)[0], alone
            )
        )
        <= 1
    )
    images = generate_images(other, candidate(PROMPTS, 5, 1, 1.0, 1.0), sampling=few)[0]
    assert largest_changes(images, alone)[1] <= 1
    # The same words make the same image.
    same = generate_images(other, candidate((PROMPTS[2],) * 2, 7, 0, 1.0, 1.0), sampling=few)[0]
    assert max(largest_changes(same[:1], same[1:])) <= 1


@pytest.mark.parametrize(("make", "words", "layers"), [(stable_diffusion_3, 48, 1), (flux, 512, 2)])
def test_every_layer_of_both_knows_where_words_and_images_are(make, words, layers, tmp_path):
    model = load_generator(f"diffusers:{make(tmp_path / 'model')}", device="cpu")
    calls = []

    class Watching(SharedAttention):
        def mix(self, query, key, value, mixed, *, images, texts, to_images):
            calls.append(
                (query.shape[2], *(part.indices(query.shape[2]) for part in (images, texts)))
            )
            before = mixed.clone()
            places = {"images": images, "texts": texts, "to_images": to_images}
            super().mix(query, key, value, mixed, **places)
            # Words themselves are left as they are, and images of the set but the base change.
            assert (mixed[..., texts, :] - before[..., texts, :]).abs().max() < 1e-5
            changed = (mixed - before)[..., images, :].abs().amax(dim=(1, 2, 3))[-3:]
            assert changed[0] < 1e-5 < min(changed[1:])

    control = Watching([candidate(PROMPTS, 5, 0, 1.0)], model.tokens(PROMPTS))
    processors = dict(model.pipeline.transformer.attn_processors)
    few = Sampling(steps=2, guidance=4.0)
    model.generate_with(PROMPTS, seeds=[5] * 3, sampling=few, attention=control)
    assert len(calls) == 2 * layers
    for places, images, texts in calls:
        assert texts[1] - texts[0] == words
        assert (images[1] - images[0]) + words == places
    assert model.pipeline.transformer.attn_processors == processors


def test_a_layer_of_both_shares_the_words_that_are_the_same():
    import torch

    tokens = [(1, 5, 2, 0), (1, 6, 2, 0)]
    control = SharedAttention([candidate(("", ""), 0, 1, 1.0, 1.0)], tokens)
    control.begin(1)
    query, key, value = torch.randn(3, 4, 2, 13, 5)  # half of it without prompts
    maps = torch.softmax(query @ key.transpose(-1, -2) / 5**0.5, dim=-1)
    output = maps @ value
    image = slice(0, 9)
    control.mix(query, key, value, output, images=image, texts=slice(9, 13), to_images=image)
    mixed = maps.clone()
    mixed[2, :, :9, :9] = maps[3, :, :9, :9]
    mixed[2, :, :9, [9, 11, 12]] = maps[3, :, :9, [9, 11, 12]]
    torch.testing.assert_close(output, mixed @ value)


def test_every_step_of_the_scheduler_counts(model):
    """PNDM runs the denoiser once more than it was asked for."""
    counts = []

    class Counting(SharedAttention):
        def begin(self, steps):
            counts.append(steps)
            super().begin(steps)

        def advance(self):
            super().advance()
            counts.append(len(self.active(cross=True)))

    control = Counting([candidate(PROMPTS, 5, 0, 0.5)], model.tokens(PROMPTS))
    model.generate_with(PROMPTS, seeds=[5] * 3, sampling=SAMPLING, attention=control)
    assert counts == [5, 1, 0, 0, 0, 0]


def test_the_model_is_left_as_it_was(model, tmp_path):
    processors = dict(model.pipeline.unet.attn_processors)
    generate_images(model, candidate(PROMPTS, 5))
    assert model.pipeline.unet.attn_processors == processors

    class Broken(SharedAttention):
        def advance(self):
            raise KeyboardInterrupt

    control = Broken([candidate(PROMPTS, 5, 0, 1.0, 1.0)], model.tokens(PROMPTS))
    with pytest.raises(KeyboardInterrupt):
        model.generate_with(PROMPTS, seeds=[5] * 3, sampling=SAMPLING, attention=control)
    assert model.pipeline.unet.attn_processors == processors
    assert (
        largest_changes(plain(model, 5), generate_images(model, candidate(PROMPTS, 5, 0, 0.0))[0])
        == [0] * 3
    )
