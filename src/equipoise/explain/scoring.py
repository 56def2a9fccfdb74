"""What a model thinks of an image, as a number that can be followed back to its pixels."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from equipoise.core import InputError, ModelError, record
from equipoise.models.edits import Insides, insides
from equipoise.models.hf import HfAnswerer
from equipoise.models.images import Images
from equipoise.models.matching import MatchingModel
from equipoise.models.protocols import Answerer, Classifier, DualEncoder, Model
from equipoise.models.towers import TowerEncoder

Tensors = dict[str, Any]
Score = Callable[[Tensors, Sequence[str]], Any]
"""From tensors of n images and n targets to n numbers, each of its own image alone."""

Places = tuple[int, int, int]
"""Rows and columns of an image's places among the tokens of a sequence, and where they begin."""

SEEING = ("vision_model", "bridgetower.vision_model", "visual", "vit_model.visual", "image_model")
"""Where the part of a model lies that sees images alone, by name of its layers."""

SPEAKING = re.compile(r"(?:.*\.)?(?:language|text)_model\.(?:.*\.)?layers\.0")
"""The first layer of a language model, whose input holds the places of an image."""


@record
class Scoring:
    """The score of an image that a map explains.

    Attributes
    ----------
    inside : Insides
        The model's torch module.
    score : callable
        From tensors of n images and their targets to n numbers.
    inputs : callable
        From images to the tensors that `score` takes.
    tower : str
        Name of the part that sees images alone; empty where that is the whole module.
    places : callable or None
        From the tensors of one image to its places, of a model that reads images and texts in one
        sequence.
    alone : bool
        Whether `score` takes one image at a time; so it is with `places`.
    """

    inside: Insides
    score: Score
    inputs: Callable[[Images], Tensors]
    tower: str = ""
    places: Callable[[Tensors], Places] | None = None
    alone: bool = False

    @property
    def layer(self) -> str | None:
        """The layer that maps are made of, where the kind of model decides it."""
        model = self.inside.model
        if not isinstance(model, HfAnswerer) or not model.family.chat:
            return None
        names = (name for name, _ in self.inside.module.named_modules())
        return next(filter(SPEAKING.fullmatch, names), None)


def scoring(model: Model, targets: Sequence[str], *, question: str = "") -> Scoring:
    """Return the score that is traced back to the pixels.

    Parameters
    ----------
    model : Classifier, DualEncoder, PairScorer or Answerer
    targets : sequence of str
        All that will be asked for: labels of a classifier; texts; answers.
    question : str
        Of a model that answers questions; empty for a caption.

    Returns
    -------
    Scoring
        The logit of a label; the cosine of image and text; the logit of a match less that of no
        match; the log-likelihood of the answer, or its logit where answers are classes.

    Raises
    ------
    InputError
        When a classifier lacks a label, or a question is asked of what answers none.
    ModelError
        When the model's insides cannot be reached, or it computes with fewer than 32 bits.
    """
    inside = insides(model)
    if inside.model is not model and hasattr(model, "model"):
        model = inside.model
    if question and not isinstance(model, Answerer):
        raise InputError(f"{inside.name} answers no questions; leave the question out")
    weight = next(iter(inside.module.parameters()))
    if weight.dtype != inside.torch.float32:
        raise ModelError(f"{inside.name}: maps of activations need float32. To do: dtype: float32.")
    if isinstance(model, DualEncoder):
        return Scoring(inside, _cosine(model, inside, targets), inside.inputs)
    if isinstance(model, Classifier):
        return Scoring(inside, _logit(model, inside, targets), inside.inputs)
    # Texts run through the same module.
    layers = dict(inside.module.named_modules())
    tower = next((name for name in SEEING if name in layers), "")
    patches = partial(_patches, inside.module) if "vilt" in layers else None
    if isinstance(model, MatchingModel):
        alone = patches is not None
        return Scoring(inside, _match(model), inside.inputs, tower, patches, alone)
    if isinstance(model, HfAnswerer):
        score = _likelihood(model, inside, question.strip(), targets)
        if model.family.name in BLIP:
            return Scoring(inside, score, inside.inputs, tower)
        places = partial(_tokens, model) if model.family.chat else patches
        return Scoring(inside, score, partial(model.inputs, question), tower, places, True)
    raise ModelError(
        f"{inside.name} is of a kind whose opinion cannot be followed back to pixels here. "
        "To do: name a classifier, a dual encoder, or a model of hf: that matches or answers."
    )


def _patches(module: Any, inputs: Tensors) -> Places:
    """Return the places of ViLT: at the end of the sequence."""
    high, wide = (size // module.config.patch_size for size in inputs["pixel_values"].shape[2:])
    return high, wide, -high * wide


def _tokens(model: HfAnswerer, inputs: Tensors) -> Places:
    """Return the places of a chat model: where the tokens of the image stand."""
    config = model.model.config
    positions = (inputs["input_ids"][0] == config.image_token_id).nonzero()[:, 0].tolist()
    if "image_grid_thw" in inputs:
        merged = config.vision_config.spatial_merge_size
        _, high, wide = (inputs["image_grid_thw"][0] // merged).tolist()
    else:
        high = wide = math.isqrt(len(positions))
    if (
        not positions
        or high * wide != len(positions)
        or positions[-1] - positions[0] + 1 != len(positions)
    ):
        raise ModelError(
            f"{model.info.name} takes images in pieces without a grid, so there is no map of "
            "them. To do: name a model that takes the whole image at once."
        )
    return high, wide, positions[0]


def _logit(model: Classifier, inside: Insides, targets: Sequence[str]) -> Score:
    places = _places(dict(enumerate(model.labels)), targets, f"{inside.name} has no label")

    def score(inputs: Tensors, texts: Sequence[str]) -> Any:
        output = inside.module(inputs["pixel_values"])
        logits = getattr(output, "logits", output)
        columns = inside.torch.tensor([places[text] for text in texts], device=logits.device)
        return logits.gather(1, columns[:, None])[:, 0]

    return score


def _places(names: Mapping[int, str], targets: Sequence[str], problem: str) -> dict[str, int]:
    """Return the place of each name; refuse targets that are none."""
    places = {str(name): place for place, name in names.items()}
    for target in targets:
        if target not in places:
            raise InputError(f"{problem} {target!r}")
    return places


def _cosine(model: DualEncoder, inside: Insides, targets: Sequence[str]) -> Score:
    texts = list(dict.fromkeys(targets))
    places = {text: place for place, text in enumerate(texts)}
    vectors = _unit(inside.torch.from_numpy(model.embed_texts(texts)))

    def score(inputs: Tensors, texts: Sequence[str]) -> Any:
        if isinstance(model, TowerEncoder):
            images = _unit(model.tower.call(inside.module, inputs)[0])
        else:
            images = _unit(inside.module(inputs["pixel_values"]))
        text_vectors = vectors[[places[text] for text in texts]].to(images.device)
        return (images * text_vectors).sum(dim=1)

    return score


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=1, keepdim=True)


def _match(model: MatchingModel) -> Score:
    def score(inputs: Tensors, texts: Sequence[str]) -> Any:
        image_states = model.family.encode_images(model.model, inputs)
        return model.family.match(model.model, image_states, model.tokens(texts))

    return score


BLIP = ("blip-vqa", "blip-caption")


def _likelihood(model: HfAnswerer, inside: Insides, question: str, targets: Sequence[str]) -> Score:
    family = model.family
    if not question and not family.captions:
        raise InputError(f"{inside.name} answers questions; the question is missing")
    if question and not (family.prompt or family.chat):
        raise InputError(f"{inside.name} only captions; leave the question out")
    if family.classes:
        return _answer_class(model, targets)
    if family.name not in BLIP:
        return partial(_continued, model)

    def score(inputs: Tensors, texts: Sequence[str]) -> Any:
        tokens = _answer_tokens(model, texts)
        logits = _logits(model, inputs, tokens, question)[:, :-1]
        log_probabilities = _log_probabilities(logits, tokens["input_ids"][:, 1:])
        return (log_probabilities * tokens["attention_mask"][:, 1:]).sum(dim=1)

    return score


def _log_probabilities(logits: Any, tokens: Any) -> Any:
    return logits.log_softmax(dim=-1).gather(2, tokens[:, :, None])[:, :, 0]


def _answer_class(model: HfAnswerer, targets: Sequence[str]) -> Score:
    answers = model.model.config.id2label
    places = _places(answers, targets, f"{model.info.name} has among its classes no answer")
    return lambda inputs, texts: model.classify(inputs)[:, places[texts[0]]]


def _continued(model: HfAnswerer, inputs: Tensors, texts: Sequence[str]) -> Any:
    """Return the log-likelihood of the answer to one image where a language model goes on."""
    config, tensors = model.model.config, dict(inputs)
    # BLIP-2's prompt ends without the space that an answer begins with.
    text = texts[0] if model.family.chat else f" {texts[0]}"
    answer = model.processor.tokenizer(text, add_special_tokens=False, return_tensors="pt")
    ids = answer["input_ids"].to(tensors["pixel_values"].device)
    if "input_ids" not in tensors:  # of a caption
        start = [config.image_token_id] * config.num_query_tokens
        tensors["input_ids"] = ids.new_tensor([[*start, config.text_config.bos_token_id]])
    if config.get_text_config().is_encoder_decoder:
        logits = model.model(**tensors, labels=ids).logits
        return _log_probabilities(logits, ids).sum(dim=1)
    shape = tensors["input_ids"].shape
    fills = {"input_ids": ids, "attention_mask": ids.new_ones(ids.shape)}
    for name, value in tensors.items():
        if value.shape == shape:  # and those that say of what kind a token is: of text, 0
            more = fills.get(name, ids.new_zeros(ids.shape))
            tensors[name] = model.placement.torch.cat([value, more], dim=1)
    logits = model.model(**tensors).logits[:, -ids.shape[1] - 1 : -1]
    return _log_probabilities(logits, ids).sum(dim=1)


def _answer_tokens(model: HfAnswerer, answers: Sequence[str]) -> Tensors:
    """Answers between the tokens that begin and end one, filled up at their ends."""
    tokenizer, text = model.processor.tokenizer, model.model.config.text_config
    rows = []
    for answer in answers:
        ids = tokenizer(answer, add_special_tokens=False).input_ids
        rows.append([text.bos_token_id, *ids, text.sep_token_id])
    padded = tokenizer.pad({"input_ids": rows}, padding_side="right", return_tensors="pt")
    return model.placement.put(padded)


def _logits(model: HfAnswerer, inputs: Tensors, answer: Tensors, question: str) -> Any:
    """Return the logits of each token of the answer to a question, or of a caption without one."""
    states = model.model.vision_model(pixel_values=inputs["pixel_values"]).last_hidden_state
    mask = states.new_ones(states.shape[:2]).long()
    if question:
        text = model.family.prompt.format(question)
        tokens = model.processor.tokenizer([text] * len(states), return_tensors="pt")
        question_mask = tokens["attention_mask"].to(states.device)
        states = model.model.text_encoder(
            input_ids=tokens["input_ids"].to(states.device),
            attention_mask=question_mask,
            encoder_hidden_states=states,
            encoder_attention_mask=mask,
        ).last_hidden_state
        mask = question_mask
    return model.model.text_decoder(
        **answer, encoder_hidden_states=states, encoder_attention_mask=mask
    ).logits
