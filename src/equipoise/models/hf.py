"""The prefix ``hf:``: checkpoints of transformers, by what their architecture can do."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core.arrays import Floats32
from equipoise.core.errors import MissingExtraError, ModelError
from equipoise.models.backends import torch_only, with_backend
from equipoise.models.batching import Batches
from equipoise.models.heads import last_linear, seen_by
from equipoise.models.hub import PICKLED_ONLY, cached, commit, fetched, without_revision
from equipoise.models.images import pillow_images
from equipoise.models.info import ModelInfo, digests, settings_in
from equipoise.models.options import Options
from equipoise.models.preprocessing import Preparation, of_transformers, preparation
from equipoise.models.protocols import Offer
from equipoise.models.registry import Preview, adapter
from equipoise.models.runtimes import Placement, place, quiet, transformers
from equipoise.models.towers import (
    Call,
    Tower,
    TowerClassifier,
    TowerEncoder,
    build_tower,
    tower_info,
)

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
CONFIG, ADAPTER = "config.json", "adapter_config.json"
TOLD = ("*.json", "*.txt", "*.model", "*.jinja")  # configuration, tokenizer, image processor


@dataclass(frozen=True)
class Checkpoint:
    """A folder that `save_pretrained` wrote, or a snapshot of a hub's repository.

    Attributes
    ----------
    asked : str
        Hub id or folder, as asked for.
    folder : Path
        Where the files are.
    config : mapping
        What config.json holds.
    weights : tuple of Path
        The files of weights that will be read.
    revision : str or None
        Commit, of a snapshot.
    """

    asked: str
    folder: Path
    config: dict[str, Any]
    weights: tuple[Path, ...]
    revision: str | None

    @property
    def architecture(self) -> str:
        """The class that the weights are of, as config.json says; empty where it does not."""
        return next(iter(self.config.get("architectures") or []), "")

    @property
    def safe(self) -> bool:
        """Whether the weights are safetensors."""
        return all(path.suffix == ".safetensors" for path in self.weights)

    def digests(self, code: bool) -> dict[str, str]:
        """Return the SHA-256 of every file that is read; with `code`, also of its Python code."""
        return digests(settings_in(self.folder, code=code), self.folder) | digests(self.weights)


def find_checkpoint(asked: str, options: Options) -> Checkpoint:
    """Find the files of a checkpoint: in a folder, in the local cache, or on the hub.

    Parameters
    ----------
    asked : str
        A folder or a hub id.
    options : Options
        Which revision, and whether pickles are allowed.

    Returns
    -------
    Checkpoint

    Raises
    ------
    ModelError
        If there are no such files, they cannot be fetched, or the weights are pickles.
    """
    folder = Path(asked).expanduser()
    if folder.is_dir():
        without_revision(asked, options)
        found, revision = folder, None
    else:
        found = fetched(asked, options, _wanted(options))
        revision = commit(found)
    return Checkpoint(
        asked, found, _config(asked, found), _weights(asked, found, options.allow_pickle), revision
    )


def _wanted(options: Options) -> list[str]:
    patterns = [*TOLD, "model*.safetensors"]
    patterns += ["pytorch_model*.bin"] if options.allow_pickle else []
    patterns += ["*.py"] if options.trust_remote_code else []
    return patterns


def _config(asked: str, folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise ModelError(
            f"{asked} holds no {CONFIG}. To do: name a folder that save_pretrained wrote."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} holds no configuration of a model.")
    _refuse_others(folder, config)
    return config


def _refuse_others(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that has the library read other weights than those that key evidence."""
    other = (
        f"{CONFIG} names weights of its own (transformers_weights)"
        if "transformers_weights" in config
        else f"{ADAPTER} is an adapter for other weights"
    )
    if "transformers_weights" in config or (folder / ADAPTER).is_file():
        raise ModelError(
            f"{folder}: {other}. To do: merge them into the model and save it by save_pretrained."
        )


def _weights(asked: str, folder: Path, allow_pickle: bool) -> tuple[Path, ...]:
    names = (SAFE, PICKLED) if allow_pickle else (SAFE,)
    for name in names:
        for path in (folder / name, folder / f"{name}.index.json"):
            if path.is_file():
                return _shards(asked, path)
    if any(folder.glob("pytorch_model*.bin*")):
        raise ModelError(PICKLED_ONLY.format(asked))
    raise ModelError(f"{asked} holds no weights ({SAFE}).")


def _shards(asked: str, path: Path) -> tuple[Path, ...]:
    if path.suffix != ".json":
        return (path,)
    index = json.loads(path.read_text(encoding="utf-8"))
    names = sorted({*index["weight_map"].values()})
    missing = [
        name for name in names if Path(name).name != name or not (path.parent / name).is_file()
    ]
    if missing:
        raise ModelError(f"{asked} lacks weights that its index names: {', '.join(missing)}.")
    return tuple(path.parent / name for name in names)


@dataclass(frozen=True)
class Source:
    """A checkpoint that is about to be loaded.

    Attributes
    ----------
    checkpoint : Checkpoint
        Its files.
    options : Options
        What was asked.
    placement : Placement
        Where it will run.
    library : module
        transformers.
    """

    checkpoint: Checkpoint
    options: Options
    placement: Placement
    library: Any

    def model(self, loader: str) -> Any:
        """Load the weights, ready for inference.

        Parameters
        ----------
        loader : str
            Name of a class of transformers.

        Raises
        ------
        ModelError
            If the checkpoint cannot be read, or lacks weights that the class needs: the library
            would fill them with random numbers.
        """
        code = {"trust_remote_code": True} if self.options.trust_remote_code else {}
        with quiet(self.library):
            try:
                model, told = getattr(self.library, loader).from_pretrained(
                    self.checkpoint.folder,
                    dtype=self.placement.torch_dtype,
                    use_safetensors=self.checkpoint.safe,
                    local_files_only=True,
                    output_loading_info=True,
                    **code,
                )
            except Exception as error:
                raise ModelError(f"{self.checkpoint.asked} cannot be loaded: {error}") from error
        self._refuse_random(sorted(told["missing_keys"]))
        return model.to(self.placement.device).eval()

    def _refuse_random(self, missing: list[str]) -> None:
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise ModelError(
                f"{self.checkpoint.asked} lacks weights that it needs "
                f"({', '.join(missing[:3])}{more}); they would be random numbers."
            )

    def part(self, loader: str) -> Any:
        """Load what travels with the weights: a tokenizer, an image processor, or both.

        Parameters
        ----------
        loader : str
            ``AutoTokenizer``, ``AutoImageProcessor`` or ``AutoProcessor``.

        Raises
        ------
        MissingExtraError
            If it needs torchvision: the processors of chat models that also see videos do.
        ModelError
            If there is none, or it cannot be loaded.
        """
        with quiet(self.library):
            try:
                return getattr(self.library, loader).from_pretrained(
                    self.checkpoint.folder,
                    local_files_only=True,
                    trust_remote_code=self.options.trust_remote_code,
                )
            except Exception as error:
                if isinstance(error, ImportError) and "torchvision" in str(error).lower():
                    raise MissingExtraError("torchvision", "chat") from error
                raise ModelError(
                    f"{self.checkpoint.asked} has no {PARTS[loader]} that can be loaded: {error}"
                ) from error

    def preparation(self, processor: Any) -> Preparation:
        """Choose how images are prepared: as an image processor of transformers does."""
        settings = json.loads(processor.to_json_string())
        # Code that came with a checkpoint may do what no setting says.
        own = type(processor).__module__.partition(".")[0] == "transformers"
        return preparation(
            self.options.name,
            lambda images: processor(images=[*images], return_tensors="pt"),
            of_transformers(settings, getattr(processor, "backend", "")) if own else None,
            self.placement.torch,
            choice=self.options.preprocessing,
        )

    def tower(self, model: Any, call: Call, prepare: Preparation) -> Tower:
        """Make the tower that sees images."""
        with quiet(self.library):
            return build_tower(self.placement, self.options, model, call, prepare)

    def info(
        self,
        family: str,
        preprocessing: dict[str, Any],
        tower: Tower | None = None,
        **facts: Any,
    ) -> ModelInfo:
        """Gather what is known of the model."""
        files = self.checkpoint.digests(self.options.trust_remote_code)
        weights = {path.name: files[path.name] for path in self.checkpoint.weights}
        return tower_info(
            self.options, family, files, weights,
            self.placement, ("transformers", self.library.__version__), tower,
            revision=self.checkpoint.revision, preprocessing=preprocessing, **facts,
        )  # fmt: skip


PARTS = {
    "AutoTokenizer": "tokenizer",
    "AutoImageProcessor": "image processor",
    "AutoProcessor": "processor",
}


def image_facts(processor: Any) -> dict[str, Any]:
    """Return which image processor runs, on which backend, with which settings."""
    return {
        "image_processor": type(processor).__name__,
        "image_backend": getattr(processor, "backend", ""),
        "image_settings": json.loads(processor.to_json_string()),
    }


def text_facts(tokenizer: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return which tokenizer runs, and how it pads and cuts."""
    return {"tokenizer": type(tokenizer).__name__, "text": dict(settings)}


LOADER = "AutoModelForImageClassification"


def _outputs(head: Any, model: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Logits, and what the last layer sees where there is one."""
    if head is None:
        return (model(**inputs).logits,)
    output, seen = seen_by(head, lambda: model(**inputs))
    return output.logits, seen


def load_classifier(source: Source) -> TowerClassifier:
    """Load a checkpoint that transformers knows as an image classifier."""
    model = source.model(LOADER)
    images = source.part("AutoImageProcessor")
    head = last_linear(source.placement.torch, getattr(model, "classifier", None))
    multi_label = model.config.problem_type == "multi_label_classification"
    prepare = source.preparation(images)
    tower = source.tower(model, partial(_outputs, head), prepare)
    facts = image_facts(images) | prepare.facts
    facts |= {"probabilities": "sigmoid" if multi_label else "softmax"}
    return TowerClassifier(
        info=source.info(
            model.config.model_type,
            facts,
            tower,
            dimension=None if head is None else head.in_features,
        ),
        labels=tuple(model.config.id2label[index] for index in range(model.config.num_labels)),
        model=model,
        prepare=prepare,
        tower=tower,
        multi_label=multi_label,
        batches=source.placement.batches(),
    )


def _pooled(output: Any) -> Any:
    return output.pooler_output


def _first(output: Any) -> Any:
    # FLAVA projects every token; its contrastive loss sees the first.
    return output.pooler_output[:, 0]


@dataclass(frozen=True)
class EncoderFamily:
    """What differs between the families.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    loader : str
        The class of transformers.
    vector : callable
        From the output of `get_image_features` or `get_text_features` to vectors.
    padding : bool or str
        How a tokenizer fills up texts; SigLIP was trained with all of one length, without a mask.
    lowercase : bool
        Whether texts are put in lower case first. SigLIP was trained so, and the tokenizer that
        comes with some of its second generation does not do it.
    longest : int
        Most tokens of a text that the model was trained with; the positions it has, if fewer.
    """

    name: str
    loader: str
    vector: Callable[[Any], Any] = _pooled
    padding: bool | str = True
    longest: int = 10_000
    lowercase: bool = False


ENCODERS = {
    "CLIPModel": EncoderFamily("clip", "CLIPModel"),
    "SiglipModel": EncoderFamily("siglip", "SiglipModel", _pooled, "max_length", 64, True),
    "Siglip2Model": EncoderFamily("siglip2", "Siglip2Model", _pooled, "max_length", 64, True),
    "FlavaModel": EncoderFamily("flava", "FlavaModel", _first, "max_length", 77),
    "FlavaForPreTraining": EncoderFamily("flava", "FlavaModel", _first, "max_length", 77),
}


@dataclass(frozen=True, kw_only=True)
class HfDualEncoder(TowerEncoder):
    """A dual encoder of transformers."""

    text_settings: dict[str, Any]
    family: EncoderFamily

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a tensor of vectors of texts, (n, dimension)."""
        inputs = self.tokenizer(self._cased(texts), return_tensors="pt", **self.text_settings)
        output = self.model.get_text_features(**self.placement.put(inputs))
        return self.family.vector(output)

    def count_long(self, texts: Sequence[str]) -> tuple[int, int]:
        """Return how many texts are too long, and how many tokens the model reads."""
        most = self.text_settings["max_length"]
        tokens = self.tokenizer(self._cased(texts), verbose=False).input_ids
        return sum(len(ids) > most for ids in tokens), most

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() if self.family.lowercase else text for text in texts]


def load_dual_encoder(source: Source) -> HfDualEncoder:
    """Load a checkpoint whose architecture is in `ENCODERS`."""
    family = ENCODERS[source.checkpoint.architecture]
    model = source.model(family.loader)
    images, tokenizer = source.part("AutoImageProcessor"), source.part("AutoTokenizer")
    settings = {
        "padding": family.padding,
        "truncation": True,
        "max_length": min(family.longest, model.config.text_config.max_position_embeddings),
    }
    _check_tokenizer(source, tokenizer, settings)
    prepare = source.preparation(images)
    tower = source.tower(
        model,
        lambda whole, inputs: (family.vector(whole.get_image_features(**inputs)),),
        prepare,
    )
    texts = settings | {"lowercase": family.lowercase}
    return HfDualEncoder(
        info=source.info(
            family.name,
            image_facts(images) | prepare.facts | text_facts(tokenizer, texts),
            tower,
            dimension=_dimension(model),
            scale=math.exp(model.logit_scale.item()),
            bias=model.logit_bias.item() if hasattr(model, "logit_bias") else 0.0,
        ),
        model=model,
        prepare=prepare,
        tower=tower,
        tokenizer=tokenizer,
        text_settings=settings,
        family=family,
        image_batches=source.placement.batches(),
        text_batches=source.placement.batches(),
    )


def _check_tokenizer(source: Source, tokenizer: Any, settings: dict[str, Any]) -> None:
    """Refuse a tokenizer that loads and then fails on every text, such as one that can't pad."""
    try:
        tokenizer(["a", "a photo"], return_tensors="pt", **settings)
    except Exception as error:
        raise ModelError(
            f"{source.checkpoint.asked} has no tokenizer that can be loaded: {error}"
        ) from error


def _dimension(model: Any) -> int:
    """Length of a vector: `projection_dim`, or a SigLIP's width of the text tower's last layer."""
    size = getattr(model.config, "projection_dim", None)
    text = model.config.text_config
    return int(size or getattr(text, "projection_size", None) or text.hidden_size)


Tensors = dict[str, Any]


def _blip_sees(model: Any, images: Tensors) -> Tensors:
    # The image's own tower does not depend on the text, so it runs once for all texts.
    return {"seen": model.vision_model(pixel_values=images["pixel_values"]).last_hidden_state}


def _blip_matches(model: Any, seen: Tensors, texts: Tensors) -> Any:
    states = model.text_encoder(
        input_ids=texts["input_ids"],
        attention_mask=texts["attention_mask"],
        encoder_hidden_states=seen["seen"],
        encoder_attention_mask=seen["seen"].new_ones(seen["seen"].shape[:2]).long(),
    ).last_hidden_state
    return model.itm_head(states[:, 0])


def _bridgetower_sees(_: Any, images: Tensors) -> Tensors:
    return images


def _bridgetower_matches(model: Any, seen: Tensors, texts: Tensors) -> Any:
    return model(**seen, **texts).logits


@dataclass(frozen=True)
class ScorerFamily:
    """What differs between the families.

    Attributes
    ----------
    name, loader : str
        As it stands in `ModelInfo.family`; the class of transformers.
    sees : callable
        From the model and tensors of images to what texts are matched with.
    matches : callable
        From the model, rows of that and tensors of as many texts to two logits a pair: no match,
        match.
    """

    name: str
    loader: str
    sees: Callable[[Any, Tensors], Tensors]
    matches: Callable[[Any, Tensors, Tensors], Any]


SCORERS = {
    "BlipForImageTextRetrieval": ScorerFamily(
        "blip-matching", "BlipForImageTextRetrieval", _blip_sees, _blip_matches
    ),
    "BridgeTowerForImageAndTextRetrieval": ScorerFamily(
        "bridgetower-matching",
        "BridgeTowerForImageAndTextRetrieval",
        _bridgetower_sees,
        _bridgetower_matches,
    ),
}


@dataclass(frozen=True)
class HfPairScorer:
    """A model of transformers that matches images with texts; made by `load_model`."""

    info: ModelInfo
    model: Any
    prepare: Preparation
    tokenizer: Any
    text_settings: dict[str, Any]
    family: ScorerFamily
    placement: Placement
    image_batches: Batches
    pair_batches: Batches

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats32:
        """Return the probability that an image and a text match, of every pair.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.
        texts : sequence of m str
            A text longer than the model reads is cut.

        Returns
        -------
        ndarray of float32, shape (n, m)
            From 0 to 1, higher matches better; NaN where the model gives NaN.
        """
        empty = np.empty((0, len(texts)), dtype=np.float32)
        if not texts:
            return np.empty((len(images), 0), dtype=np.float32)
        tokens = self._tokens(texts)
        rows = self.image_batches.map(lambda batch: self._rows(batch, tokens), images)
        return np.concatenate([empty, *rows])

    def _tokens(self, texts: Sequence[str]) -> Tensors:
        found = self.tokenizer(list(texts), return_tensors="pt", **self.text_settings)
        return self.placement.put(found)

    def _rows(self, images: Sequence[Any], tokens: Tensors) -> Floats32:
        inputs = self.prepare(images)
        with self.placement.torch.inference_mode():
            seen = self.family.sees(self.model, self.placement.put(inputs))
            pairs = list(product(range(len(images)), range(len(tokens["input_ids"]))))
            parts = self.pair_batches.map(lambda some: self._pairs(some, seen, tokens), pairs)
        return np.concatenate(parts).reshape(len(images), -1)

    def _pairs(self, pairs: Sequence[tuple[int, int]], seen: Tensors, tokens: Tensors) -> Floats32:
        rows, columns = ([pair[side] for pair in pairs] for side in (0, 1))
        logits = self.family.matches(
            self.model,
            {name: value[rows] for name, value in seen.items()},
            {name: value[columns] for name, value in tokens.items()},
        )
        match = logits.float().softmax(dim=-1)[:, 1]
        return np.asarray(match.cpu().numpy(), dtype=np.float32)


def load_pair_scorer(source: Source) -> HfPairScorer:
    """Load a checkpoint whose architecture is in `SCORERS`."""
    family = SCORERS[source.checkpoint.architecture]
    model = source.model(family.loader)
    images, tokenizer = source.part("AutoImageProcessor"), source.part("AutoTokenizer")
    positions = model.config.text_config.max_position_embeddings
    settings = {
        "padding": True,
        "truncation": True,
        "max_length": min(tokenizer.model_max_length, positions),
        "return_token_type_ids": False,
    }
    prepare = source.preparation(images)
    facts = image_facts(images) | prepare.facts | text_facts(tokenizer, settings)
    return HfPairScorer(
        info=source.info(family.name, facts),
        model=model,
        prepare=prepare,
        tokenizer=tokenizer,
        text_settings=settings,
        family=family,
        placement=source.placement,
        image_batches=source.placement.batches(),
        pair_batches=source.placement.batches(),
    )


AT_ONCE = 16

# Always the likeliest word: the same question to the same image has the same answer. Checkpoints
# come with settings of their own for sampling, which are switched off here.
DECODING = {
    "max_new_tokens": 32,
    "do_sample": False,
    "num_beams": 1,
    "temperature": None,
    "top_p": None,
    "top_k": None,
}


@dataclass(frozen=True)
class AnswererFamily:
    """How a question is put.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    prompt : str
        What stands around the question, ``{}``; empty of a model that only captions. It is not
        used where `chat` is set.
    captions : bool
        Whether an empty question asks for a caption.
    chat : bool
        Whether the question is put by the chat template that comes with the checkpoint.
    """

    name: str
    prompt: str = ""
    captions: bool = False
    chat: bool = False


ANSWERERS = {
    "BlipForQuestionAnswering": AnswererFamily("blip-vqa", "{}"),
    "BlipForConditionalGeneration": AnswererFamily("blip-caption", captions=True),
    "Blip2ForConditionalGeneration": AnswererFamily(
        "blip-2", "Question: {} Answer:", captions=True
    ),
}


@dataclass(frozen=True)
class HfAnswerer:
    """A model of transformers that answers questions about images; made by `load_model`."""

    info: ModelInfo
    model: Any
    processor: Any
    family: AnswererFamily
    placement: Placement
    batches: Batches

    def answer(self, images: Sequence[Any], question: str) -> list[str]:
        """Return one answer for each image, as the model wrote it.

        Parameters
        ----------
        images : sequence of n images
            See `equipoise.models.images.as_rgb`.
        question : str
            The same for all. Empty asks for a caption, of BLIP and BLIP-2.

        Returns
        -------
        list of n str
            Without the question and without white space around it; at most 32 tokens. A model
            that says nothing gives an empty text.

        Raises
        ------
        ModelError
            If the question is empty and the model needs one, or the model only captions.
        """
        asked = bool(question.strip())
        if not asked and not self.family.captions:
            raise ModelError(f"{self.info.name} answers questions; it was given an empty one.")
        if asked and not self.family.chat and not self.family.prompt:
            raise ModelError(f"{self.info.name} only captions. To do: leave the question empty.")
        parts = self.batches.map(partial(self._answers, question), images)
        return [text for part in parts for text in part]

    def _answers(self, question: str, images: Sequence[Any]) -> list[str]:
        asked = self._conversation if self.family.chat else self._prompted
        inputs = self.placement.put(asked(pillow_images(images), question))
        with self.placement.torch.inference_mode():
            tokens = self.model.generate(**inputs, **DECODING)
        told = self.processor.batch_decode(
            tokens[:, self._given(inputs) :], skip_special_tokens=True
        )
        return [text.strip() for text in told]

    def _given(self, inputs: dict[str, Any]) -> int:
        """How many tokens of the output are not the answer: a decoder repeats the question."""
        config = self.model.config
        if self.family.name in {"blip-vqa", "blip-caption"}:
            return 0
        if config.get_text_config().is_encoder_decoder:
            return 0
        if "input_ids" not in inputs:
            # Of a caption, BLIP-2 writes the beginning itself: the image and the first token.
            return int(config.num_query_tokens) + 1
        return int(inputs["input_ids"].shape[1])

    def _prompted(self, images: list[Any], question: str) -> Any:
        if not question.strip():
            return self.processor(images=images, return_tensors="pt")
        text = self.family.prompt.format(question.strip())
        return self.processor(
            images=images, text=[text] * len(images), padding=True, return_tensors="pt"
        )

    def _conversation(self, images: list[Any], question: str) -> Any:
        conversations = [
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "image": image},
                        {"type": "text", "text": question.strip()},
                    ],
                }
            ]
            for image in images
        ]
        return self.processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )


def load_answerer(source: Source) -> HfAnswerer:
    """Load a checkpoint that transformers knows as a model from image and text to text."""
    architecture = source.checkpoint.architecture
    processor = source.part("AutoProcessor")
    family = ANSWERERS.get(architecture)
    if family is None:
        family = _chat(source, processor)
    # A decoder goes on where the text ends, so shorter texts are filled up at their beginning.
    processor.tokenizer.padding_side = "left"
    loader = "AutoModelForImageTextToText"
    model = source.model(architecture if architecture in ANSWERERS else loader)
    prompt = processor.chat_template if family.chat else family.prompt
    facts = image_facts(processor.image_processor) | text_facts(processor.tokenizer, {})
    return HfAnswerer(
        info=source.info(family.name, facts | {"prompt": prompt, "decoding": DECODING}),
        model=model,
        processor=processor,
        family=family,
        placement=source.placement,
        batches=source.placement.batches(AT_ONCE),
    )


def _chat(source: Source, processor: Any) -> AnswererFamily:
    if not getattr(processor, "chat_template", None):
        raise ModelError(
            f"{source.checkpoint.asked} has no chat template, so how to ask it is not known. "
            "To do: wrap it in a factory with an answer method (python:module:factory)."
        )
    return AnswererFamily(str(source.checkpoint.config.get("model_type", "chat")), chat=True)


def _preview(target: str) -> Preview:
    """Return what config.json says, in a folder or in the local cache of a hub."""
    here = Path(target).expanduser() / "config.json"
    path = here if here.is_file() else cached(target, "config.json")
    try:
        settings = json.loads(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        settings = {}
    if not isinstance(settings, dict):
        return Preview()
    architecture = next(iter(settings.get("architectures") or []), "")
    if architecture.endswith("ForImageClassification"):
        names = settings.get("id2label") or {}
        labels = tuple(str(names[number]) for number in sorted(names, key=int))
        return Preview("classifier", labels, settings.get("hidden_size"))
    offer = next((offer for offer, known in _OFFERS.items() if architecture in known), None)
    return Preview(offer, (), settings.get("projection_dim") if offer == "encoder" else None)


_OFFERS: Mapping[Offer, Collection[str]] = {
    "encoder": ENCODERS,
    "scorer": SCORERS,
    "answerer": ANSWERERS,
}


def _identify(target: str, options: Options) -> dict[str, Any]:
    placement = place(options.device, options.dtype, "hf")
    checkpoint = find_checkpoint(target, options)
    files = checkpoint.digests(options.trust_remote_code)
    return {"files": files, "revision": checkpoint.revision} | placement.identity


@adapter("hf", preview=_preview, identify=_identify, backends=True)
def load(target: str, options: Options) -> Any:
    """Load a checkpoint of transformers.

    Parameters
    ----------
    target : str
        Hub id or folder.
    options : Options
        What was asked.

    Returns
    -------
    DualEncoder, PairScorer, Classifier or Answerer
        Whichever its architecture is.

    Raises
    ------
    ModelError
        If it cannot be found, read or placed, or its architecture is none that equipoise knows.
    """
    library = transformers()
    placement = place(options.device, options.dtype, "hf", options.backend)
    checkpoint = find_checkpoint(target, options)
    loader = _loader(checkpoint.architecture, library)
    if loader is None:
        raise ModelError(
            f"{target} is a {checkpoint.architecture or 'model of no named architecture'}, which "
            f"equipoise cannot audit. It takes {', '.join(_known())}, …ForImageClassification, and "
            "chat models that see. To do: wrap it in a factory (python:module:factory)."
        )
    if loader in (load_dual_encoder, load_classifier):
        placement = with_backend(placement, options, checkpoint.weights)
    else:
        torch_only(options, f"a {checkpoint.architecture}")
    return loader(Source(checkpoint, options, placement, library))


def _known() -> list[str]:
    return sorted([*ENCODERS, *SCORERS, *ANSWERERS])


def _loader(architecture: str, library: Any) -> Callable[[Source], Any] | None:
    auto = library.models.auto.modeling_auto
    kinds: list[tuple[set[str], Callable[[Source], Any]]] = [
        (set(ENCODERS), load_dual_encoder),
        (set(SCORERS), load_pair_scorer),
        (_names(auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES), load_classifier),
        (set(ANSWERERS), load_answerer),
        (_names(auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES), load_answerer),
    ]
    return next((load for names, load in kinds if architecture in names), None)


def _names(mapping: dict[str, str | tuple[str, ...]]) -> set[str]:
    """Return all classes of a mapping from families to a class or several."""
    return {
        name
        for value in mapping.values()
        for name in ([value] if isinstance(value, str) else value)
    }
