"""The losses, beside the library's own and by hand."""

import numpy as np
import pytest
import torch

from equipoise.mitigate.losses import contrastive_loss, spread_within_sets


def vectors(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))


def test_a_caption_of_two_images_is_no_mismatch_of_either() -> None:
    image, text = vectors(1, 0), vectors(2, 1)
    twice = torch.cat([image, image, vectors(1, 2)])
    found = contrastive_loss(torch, twice, text, np.array([0, 0, 1]), torch.tensor(5.0), None)
    logits = 5.0 * torch.nn.functional.normalize(twice) @ torch.nn.functional.normalize(text).T
    rows = -torch.log_softmax(logits, dim=1)[[0, 1, 2], [0, 0, 1]].mean()
    columns = torch.log_softmax(logits.T, dim=1)
    both = -(columns[0, :2].mean() + columns[1, 2]) / 2
    assert float(found) == pytest.approx(float((rows + both) / 2), rel=1e-5)


def test_spread_is_the_variance_within_sets() -> None:
    images, queries, scale = vectors(6, 3), vectors(2, 4), torch.tensor(7.0, requires_grad=True)
    sets, subjects = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    unit = torch.nn.functional.normalize
    logits = 7.0 * (unit(images) * unit(queries)[torch.from_numpy(subjects)]).sum(dim=1)
    expected = (logits[:3].var(correction=0) + logits[3:].var(correction=0)) / 2
    found = spread_within_sets(torch, images, queries, sets, subjects, scale)
    assert float(found.detach()) == pytest.approx(float(expected), rel=1e-5)
    assert not found.requires_grad  # lowering the scale does not lower it
