"""What training lowers: the contrastive loss over sets, and the spread of logits within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


def contrastive_loss(
    torch: Any, images: Any, texts: Any, own: Places, scale: Any, bias: Any
) -> Any:
    """Return the loss with which such models are trained, of images and distinct texts.

    A text that several images have is a match for each of them, and no mismatch: the softmax of an
    image runs over distinct texts, that of a text has its images as equal targets.

    Parameters
    ----------
    torch : module
    images : tensor, shape (n, d)
    texts : tensor, shape (m, d)
        Each text once.
    own : ndarray of int, shape (n,)
        The text of each image.
    scale, bias : tensor, tensor or None
        With a bias: the sigmoid loss of each pair, as SigLIP is trained.

    Returns
    -------
    tensor of one number

    References
    ----------
    Radford et al. 2021; Zhai et al. 2023.
    """
    functional = torch.nn.functional
    unit = functional.normalize(images), functional.normalize(texts)
    logits = scale * unit[0] @ unit[1].T
    places = torch.from_numpy(own).to(logits.device)
    match = functional.one_hot(places, len(texts)).to(logits.dtype)
    if bias is not None:
        signs = 2.0 * match - 1.0
        return -functional.logsigmoid(signs * (logits + bias)).sum() / len(images)
    of_images = functional.cross_entropy(logits, places)
    shares = (match / match.sum(dim=0, keepdim=True)).T
    of_texts = functional.cross_entropy(logits.T, shares)
    return (of_images + of_texts) / 2.0


def spread_within_sets(
    torch: Any, images: Any, queries: Any, sets: Places, subjects: Places, scale: Any
) -> Any:
    """Return the variance of the logits of a subject's neutral query within each set, averaged.

    Parameters
    ----------
    torch : module
    images : tensor, shape (n, d)
    queries : tensor, shape (q, d)
        One for each subject.
    sets, subjects : ndarray of int, shape (n,)
        Set and query of each image; sets are 0 to s - 1.
    scale : tensor
        Held fixed: a model must not lower its spread by lowering all its logits.

    Returns
    -------
    tensor of one number
        0 where a query is equally similar to all members of every set.
    """
    normalize = torch.nn.functional.normalize
    query = normalize(queries)[torch.from_numpy(subjects).to(queries.device)]
    logits = scale.detach() * (normalize(images) * query).sum(dim=1)
    place = torch.from_numpy(sets).to(logits.device)
    count = int(sets.max()) + 1
    zeros = torch.zeros(count, dtype=logits.dtype, device=logits.device)
    sizes = zeros.index_add(0, place, torch.ones_like(logits))
    means = zeros.index_add(0, place, logits) / sizes
    squares = zeros.index_add(0, place, (logits - means[place]) ** 2)
    return (squares / sizes).mean()
