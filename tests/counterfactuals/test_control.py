"""Prompt-to-Prompt: which maps are shared, for how long, and what stays as the model makes it."""

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
            rest = iter(base)
            if all(any(one == two for two in rest) for one in chosen):
                return size
    return 0


TOKENS = st.lists(st.integers(0, 3), min_size=6, max_size=6).map(tuple)


@given(TOKENS, TOKENS)
def test_as_many_are_aligned_as_can_be(base, other):
    found = common(base, other)
    taken = [place for place in found if place >= 0]
    assert taken == sorted({*taken})
    assert all(place < 0 or base[place] == other[at] for at, place in enumerate(found))
    assert len(taken) == longest(base, other)


def attention_to(**seen):
    import torch
    from diffusers.models.attention_processor import Attention

    torch.manual_seed(3)
    return Attention(query_dim=8, heads=2, dim_head=4, **seen).eval()


def plainly(attention, hidden, seen, mix):
    """Attention step by step, image by image and head by head, with maps that `mix` changes."""
    import torch

    maps = []
    for image in range(len(hidden)):
        query, key = attention.to_q(hidden[image]), attention.to_k(seen[image])
        heads = [
            torch.softmax(query[:, cut] @ key[:, cut].T / 2.0, dim=-1)
            for cut in (slice(0, 4), slice(4, 8))
        ]
        maps.append(torch.stack(heads))
    out = []
    for image, own in enumerate(mix(maps)):
        value = attention.to_v(seen[image])
        both = torch.cat([own[0] @ value[:, :4], own[1] @ value[:, 4:]], dim=1)
        out.append(attention.to_out[0](both))
    return torch.stack(out)


def under(control, attention):
    """A layer whose queries, keys and values the control sees, head by head."""

    def heads(states):
        return states.unflatten(-1, (2, 4)).transpose(1, 2)

    def run(hidden, seen=None):
        every = slice(None)
        source = hidden if seen is None else seen
        query, key, value = (
            heads(own(states))
            for own, states in zip(
                (attention.to_q, attention.to_k, attention.to_v),
                (hidden, source, source),
                strict=True,
            )
        )
        mixed = (query @ key.transpose(-1, -2) / 2.0).softmax(dim=-1) @ value
        to = (
            {"texts": None, "to_images": every}
            if seen is None
            else {"texts": every, "to_images": None}
        )
        control.mix(query, key, value, mixed, images=every, **to)
        return attention.to_out[0](mixed.transpose(1, 2).flatten(2))

    return run


def test_maps_of_texts_are_those_of_the_base_where_words_are_the_same():
    import torch

    attention = attention_to(cross_attention_dim=6)
    tokens = [(1, 5, 2, 0), (1, 6, 2, 0), (1, 7, 8, 2), (1, 2, 0, 0), (1, 9, 0, 0)]
    control = SharedAttention(
        [candidate(("",) * 3, 0, 1, 0.5), candidate(("",) * 2, 0, 0, 1.0)], tokens
    )
    control.begin(4)
    hidden, seen = torch.randn(10, 9, 8), torch.randn(10, 4, 6)  # half of it without prompts
    controlled = under(control, attention)

    def mix(maps, first):
        mixed = [one.clone() for one in maps]
        if first:
            mixed[5][..., [0, 2, 3]] = maps[6][..., [0, 2, 3]]
            mixed[7][..., [0, 3]] = maps[6][..., [0, 2]]
        mixed[9][..., [0, 2, 3]] = maps[8][..., [0, 2, 3]]
        return mixed

    with torch.no_grad():
        for step in range(4):
            found = controlled(hidden, seen)
            expected = plainly(attention, hidden, seen, lambda maps, s=step: mix(maps, s < 2))
            torch.testing.assert_close(found, expected)
            control.advance()
        after = controlled(hidden, seen)
        torch.testing.assert_close(after, plainly(attention, hidden, seen, lambda maps: maps))


def test_maps_of_images_to_themselves_are_those_of_the_base():
    import torch

    own = attention_to()
    control = SharedAttention([candidate(("", ""), 0, 1, 0.0, 1.0)], [(0,), (0,)])
    control.begin(1)
    controlled = under(control, own)
    hidden = torch.randn(4, 9, 8)
    with torch.no_grad():
        found = controlled(hidden)
        shared = plainly(own, hidden, hidden, lambda maps: [*maps[:2], maps[3], maps[3]])
        torch.testing.assert_close(found, shared)
        fine = torch.randn(4, 17 * 17, 8)  # too fine to be shared
        torch.testing.assert_close(controlled(fine), own(fine))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = stable_diffusion(tmp_path_factory.mktemp("control") / "sd")
    return load_generator(f"diffusers:{folder}", device="cpu")


def made(model, *sets, sampling=SAMPLING):
    images = iter(generate_controlled(model, sets, sampling))
    return [np.stack([next(images) for _ in range(len(own))]) for own in sets]


def plain(model, seed, sampling=SAMPLING):
    return np.stack(model.generate(PROMPTS, seeds=[seed] * 3, sampling=sampling))


def apart(one, other):
    return np.abs(one.astype(int) - other).max(axis=(1, 2, 3)).tolist()


@pytest.mark.parametrize("guidance", [1.0, 4.0])
@pytest.mark.parametrize("base", [0, 2])
def test_the_base_is_what_the_model_makes_alone(base, guidance, model):
    sampling = Sampling(steps=4, guidance=guidance)
    alone = plain(model, 5, sampling)
    both = made(model, candidate(PROMPTS, 5, base, 1.0, 1.0), sampling=sampling)[0]
    moved = apart(both, alone)
    assert moved[base] <= 1
    far = np.abs(both.astype(int) - alone).mean(axis=(1, 2, 3))
    assert min(one for place, one in enumerate(far) if place != base) > 10 * far[base]


def test_sets_of_a_batch_do_not_meet(model):
    sets = [
        candidate(PROMPTS, 5, 0, 0.8, 0.4),
        candidate(PROMPTS[:2], 6, 1, 0.2),
        candidate(PROMPTS, 5, 2, 0.3, 1.0),
    ]
    together = made(model, *sets)
    for one, images in zip(sets, together, strict=True):
        assert max(apart(images, made(model, one)[0])) <= 1


@pytest.fixture(scope="module", params=[stable_diffusion_xl, stable_diffusion_3, flux])
def other(request, tmp_path_factory):
    folder = request.param(tmp_path_factory.mktemp("control") / request.param.__name__)
    return load_generator(f"diffusers:{folder}", device="cpu")


def test_sets_of_other_families_are_made_under_control(other):
    other.check_control()
    few = Sampling(steps=2, guidance=4.0)
    alone = plain(other, 5, few)
    # One noise alone is what the model makes, and so is the base of a set.
    assert max(apart(made(other, candidate(PROMPTS, 5, shared=0.0), sampling=few)[0], alone)) <= 1
    both = made(other, candidate(PROMPTS, 5, 1, 1.0, 1.0), sampling=few)[0]
    assert apart(both, alone)[1] <= 1
    # The same words make the same image.
    same = made(other, candidate((PROMPTS[2],) * 2, 7, 0, 1.0, 1.0), sampling=few)[0]
    assert max(apart(same[:1], same[1:])) <= 1


@pytest.mark.parametrize(("make", "words", "layers"), [(stable_diffusion_3, 48, 1), (flux, 512, 2)])
def test_every_layer_of_both_knows_where_words_and_images_are(make, words, layers, tmp_path):
    model = load_generator(f"diffusers:{make(tmp_path / 'model')}", device="cpu")
    seen = []

    class Watching(SharedAttention):
        def mix(self, query, key, value, mixed, *, images, texts, to_images):
            seen.append((query.shape[2], *(one.indices(query.shape[2]) for one in (images, texts))))
            before = mixed.clone()
            places = {"images": images, "texts": texts, "to_images": to_images}
            super().mix(query, key, value, mixed, **places)
            # Words themselves are left as they are, and images of the set but the base change.
            assert (mixed[..., texts, :] - before[..., texts, :]).abs().max() < 1e-5
            changed = (mixed - before)[..., images, :].abs().amax(dim=(1, 2, 3))[-3:]
            assert changed[0] < 1e-5 < min(changed[1:])

    control = Watching([candidate(PROMPTS, 5, 0, 1.0)], model.tokens(PROMPTS))
    own = dict(model.pipeline.transformer.attn_processors)
    few = Sampling(steps=2, guidance=4.0)
    model.generate_with(PROMPTS, seeds=[5] * 3, sampling=few, attention=control)
    assert len(seen) == 2 * layers
    for places, images, texts in seen:
        assert texts[1] - texts[0] == words
        assert (images[1] - images[0]) + words == places
    assert model.pipeline.transformer.attn_processors == own


def test_a_layer_of_both_shares_the_words_that_are_the_same():
    import torch

    tokens = [(1, 5, 2, 0), (1, 6, 2, 0)]
    control = SharedAttention([candidate(("", ""), 0, 1, 1.0, 1.0)], tokens)
    control.begin(1)
    query, key, value = torch.randn(3, 4, 2, 13, 5)  # half of it without prompts
    maps = torch.softmax(query @ key.transpose(-1, -2) / 5**0.5, dim=-1)
    found = maps @ value
    image = slice(0, 9)
    control.mix(query, key, value, found, images=image, texts=slice(9, 13), to_images=image)
    mixed = maps.clone()
    mixed[2, :, :9, :9] = maps[3, :, :9, :9]
    mixed[2, :, :9, [9, 11, 12]] = maps[3, :, :9, [9, 11, 12]]
    torch.testing.assert_close(found, mixed @ value)


def test_every_step_of_the_scheduler_counts(model):
    """PNDM runs the denoiser once more than it was asked for."""
    seen = []

    class Counting(SharedAttention):
        def begin(self, steps):
            seen.append(steps)
            super().begin(steps)

        def advance(self):
            super().advance()
            seen.append(len(self.active(cross=True)))

    control = Counting([candidate(PROMPTS, 5, 0, 0.5)], model.tokens(PROMPTS))
    model.generate_with(PROMPTS, seeds=[5] * 3, sampling=SAMPLING, attention=control)
    assert seen == [5, 1, 0, 0, 0, 0]


def test_the_model_is_left_as_it_was(model, tmp_path):
    own = dict(model.pipeline.unet.attn_processors)
    made(model, candidate(PROMPTS, 5))
    assert model.pipeline.unet.attn_processors == own

    class Broken(SharedAttention):
        def advance(self):
            raise KeyboardInterrupt

    control = Broken([candidate(PROMPTS, 5, 0, 1.0, 1.0)], model.tokens(PROMPTS))
    with pytest.raises(KeyboardInterrupt):
        model.generate_with(PROMPTS, seeds=[5] * 3, sampling=SAMPLING, attention=control)
    assert model.pipeline.unet.attn_processors == own
    assert apart(plain(model, 5), made(model, candidate(PROMPTS, 5, 0, 0.0))[0]) == [0] * 3
