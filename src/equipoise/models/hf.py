"""The prefix ``hf:``: checkpoints of transformers, by their architecture."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from equipoise.core import MissingExtraError, ModelError
from equipoise.core.files import read_json_file
from equipoise.core.types import Json
from equipoise.models.hub import (
    PICKLED_ONLY,
    cached_file,
    check_source,
    commit,
    fetch_folder,
    refuse_revision,
)
from equipoise.models.images import Images, pillow_images
from equipoise.models.info import ModelInfo, digests, settings_in
from equipoise.models.matching import SCORERS, MatchingModel, Tensors, vilt_places
from equipoise.models.preprocessing import Preparation, preparation, read_transformers
from equipoise.models.protocols import Model, ScoredAnswer
from equipoise.models.registry import Options, Preview, adapter
from equipoise.models.runtimes import Batches, Placement, place, quiet, transformers
from equipoise.models.towers import (
    TowerClassifier,
    TowerEncoder,
    build_tower,
    call_with_input,
    last_linear,
    logit_line,
    torch_only,
    tower_info,
    with_backend,
)

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin
    from transformers.utils import ModelOutput

    Part: TypeAlias = PreTrainedTokenizerBase | ProcessorMixin


SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
CONFIG, ADAPTER = "config.json", "adapter_config.json"
CLASSIFIER = "ForImageClassification"
"""Part of the names of classifiers' architectures."""


@dataclass(frozen=True)
class Checkpoint:
    """A folder that `save_pretrained` wrote, or a snapshot of a hub's repository.

    Attributes
    ----------
    folder : Path
        Where the files are.
    config : mapping
        What config.json holds.
    weights : tuple of Path
        The files of weights that will be read.
    options : Options
        What was asked.
    placement : Placement
        Where it will run.
    """

    folder: Path
    config: dict[str, Any]
    weights: tuple[Path, ...]
    options: Options
    placement: Placement

    @property
    def architecture(self) -> str:
        """The class named in config.json; "" if there is none."""
        return _architecture(self.config)

    @property
    def digests(self) -> dict[str, str]:
        """The SHA-256 of every file that is read."""
        files_read = settings_in(self.folder, code=self.options.trust_remote_code)
        return digests(files_read, self.folder) | digests(self.weights)

    def model(self, loader: str) -> "PreTrainedModel":
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
        try:
            model, report = self._read(
                loader,
                dtype=self.placement.torch_dtype,
                use_safetensors=self.weights[0].suffix == ".safetensors",
                output_loading_info=True,
            )
        except Exception as error:
            raise ModelError(f"{self.options.name} cannot be loaded: {error}") from error
        if missing := sorted(report["missing_keys"]):
            raise ModelError(
                f"{self.options.name} lacks weights that it needs ({', '.join(missing[:3])}); "
                "they would be random numbers."
            )
        return model.to(self.placement.device).eval()

    def part(self, loader: str) -> "Part":
        """Load a tokenizer, an image processor, or both in one.

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
        try:
            return self._read(loader)
        except Exception as error:
            if isinstance(error, ImportError) and "torchvision" in str(error).lower():
                raise MissingExtraError("torchvision", "chat") from error
            raise ModelError(
                f"{self.options.name} has no {loader[4:]} that can be loaded: {error}"
            ) from error

    def _read(self, loader: str, **settings: Any) -> Any:
        library, code = transformers(), self.options.trust_remote_code
        with quiet(library):
            return getattr(library, loader).from_pretrained(
                self.folder, local_files_only=True, trust_remote_code=code, **settings
            )

    def info(self, family: str, placement: Placement | None = None, **facts: Any) -> ModelInfo:
        """Gather the facts about the model; `placement` is its tower's."""
        files = self.digests
        weights = {path.name: files[path.name] for path in self.weights}
        return tower_info(
            self.options, family, files, weights, placement or self.placement, transformers(),
            revision=commit(self.folder), **facts,
        )  # fmt: skip


def processor_preparation(processor: "Part", options: Options, placement: Placement) -> Preparation:
    """Choose how images are prepared: as an image processor of transformers does."""
    settings = json.loads(processor.to_json_string())
    # Code that came with a checkpoint may do what no setting says.
    is_builtin = type(processor).__module__.partition(".")[0] == "transformers"
    return preparation(
        options.name,
        lambda images: processor(images=[*images], return_tensors="pt"),
        read_transformers(settings, getattr(processor, "backend", "")) if is_builtin else None,
        placement.torch,
    )


def find_checkpoint(target: str, options: Options, placement: Placement) -> Checkpoint:
    """Find the files of a checkpoint: in a folder, in the local cache, or on the hub.

    Parameters
    ----------
    target : str
        A folder or a hub id.
    options : Options
        Which revision, and whether pickles are allowed.
    placement : Placement

    Returns
    -------
    Checkpoint

    Raises
    ------
    ModelError
        If there are no such files, they cannot be fetched, or the weights are pickles.
    """
    folder = Path(target).expanduser()
    if folder.is_dir():
        refuse_revision(target, options)
    else:
        patterns = ["*.json", "*.txt", "*.model", "*.jinja", "model*.safetensors"]
        patterns += ["pytorch_model*.bin"] if options.allow_pickle else []
        patterns += ["*.py"] if options.trust_remote_code else []
        folder = fetch_folder(target, options, patterns)
    return Checkpoint(folder, _config(folder), _weights(folder, options), options, placement)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    try:
        config = read_json_file(path)
        config.get("architectures")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(
            f"{path} isn't a configuration of a model: {error}. To do: name a folder that "
            "save_pretrained wrote."
        ) from error
    # The library would read other weights than those that key evidence.
    if "transformers_weights" in config or (folder / ADAPTER).is_file():
        raise ModelError(
            f"{folder} takes weights from elsewhere (transformers_weights, or {ADAPTER}). To do: "
            "merge them into the model and save it by save_pretrained."
        )
    return dict(config)


def _architecture(config: Mapping[str, Any]) -> str:
    return next(iter(config.get("architectures") or []), "")


def _weights(folder: Path, options: Options) -> tuple[Path, ...]:
    for name in (SAFE, PICKLED) if options.allow_pickle else (SAFE,):
        if (folder / name).is_file():
            return (folder / name,)
        index = folder / f"{name}.index.json"
        if index.is_file():
            try:
                shard_names = {*read_json_file(index)["weight_map"].values()}
                shards = tuple(folder / shard for shard in sorted(shard_names))
            except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
                raise ModelError(
                    f"{index} lists no files of weights: {error}. Expected: `weight_map`, from "
                    "names of tensors to files. To do: copy or download it again."
                ) from error
            for path in shards:
                if path.parent != folder or not path.is_file():
                    raise ModelError(f"{folder} lacks weights that its index names: {path.name}.")
            return shards
    if any(folder.glob("pytorch_model*.bin*")):
        raise ModelError(PICKLED_ONLY.format(folder))
    raise ModelError(f"{folder} holds no weights ({SAFE}).")


def processor_facts(
    processor: "Part", tokenizer: "Part | None" = None, settings: Mapping[str, Json] = {}
) -> dict[str, Json]:
    """Return which image processor and tokenizer run, and their settings."""
    facts = {
        "image_processor": type(processor).__name__,
        "image_backend": getattr(processor, "backend", ""),
        "image_settings": json.loads(processor.to_json_string()),
    }
    if tokenizer is None:
        return facts
    return facts | {"tokenizer": type(tokenizer).__name__, "text": dict(settings)}


def _outputs(head: Any, model: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return logits, and the inputs of the last linear layer if there is one."""
    if head is None:
        return (model(**inputs).logits,)
    output, features = call_with_input(head, lambda: model(**inputs))
    return output.logits, features


def load_classifier(checkpoint: Checkpoint) -> TowerClassifier:
    """Load a checkpoint that transformers knows as an image classifier."""
    model = checkpoint.model("AutoModelForImageClassification")
    images = checkpoint.part("AutoImageProcessor")
    head = last_linear(checkpoint.placement.torch, getattr(model, "classifier", None))
    multi_label = model.config.problem_type == "multi_label_classification"
    placement = checkpoint.placement
    prepare = processor_preparation(images, checkpoint.options, placement)
    tower = build_tower(placement, checkpoint.options, model, partial(_outputs, head), prepare)
    facts = processor_facts(images) | prepare.facts
    facts |= {"probabilities": "sigmoid" if multi_label else "softmax"}
    info = checkpoint.info(
        model.config.model_type,
        tower.placement,
        preprocessing=facts,
        dimension=None if head is None else head.in_features,
    )
    labels = tuple(model.config.id2label[index] for index in range(model.config.num_labels))
    return TowerClassifier(info, model, tower, labels, multi_label)


class EncoderFamily(NamedTuple):
    """Differences between the families.

    Attributes
    ----------
    name : str
        As it stands in `ModelInfo.family`.
    loader : str
        The class of transformers.
    padding : bool or str
        How a tokenizer fills up texts; SigLIP was trained with all of one length, without a mask.
    longest : int
        Most tokens of a text that the model was trained with; the positions it has, if fewer.
    lowercase : bool
        Whether texts are put in lower case first. SigLIP was trained so, and the tokenizer that
        comes with some of its second generation does not do it.
    """

    name: str
    loader: str
    padding: bool | str = True
    longest: int = 10_000
    lowercase: bool = False

    def vector(self, output: "ModelOutput") -> "Tensor":
        """Return the vectors in the output of `get_image_features` or `get_text_features`."""
        pooled = output.pooler_output
        # FLAVA projects every token; its contrastive loss sees the first.
        return pooled[:, 0] if self.name == "flava" else pooled


ENCODERS = {
    "CLIPModel": EncoderFamily("clip", "CLIPModel"),
    "SiglipModel": EncoderFamily("siglip", "SiglipModel", "max_length", 64, True),
    "Siglip2Model": EncoderFamily("siglip2", "Siglip2Model", "max_length", 64, True),
    "FlavaModel": EncoderFamily("flava", "FlavaModel", "max_length", 77),
}
ENCODERS["FlavaForPreTraining"] = ENCODERS["FlavaModel"]


@dataclass(frozen=True)
class HfDualEncoder(TowerEncoder):
    """A dual encoder of transformers."""

    text_settings: dict[str, Any]
    family: EncoderFamily

    def encode(self, texts: Sequence[str]) -> "Tensor":
        """Return a tensor of vectors of texts, (n, dimension)."""
        inputs = self.tokenizer(self._cased(texts), return_tensors="pt", **self.text_settings)
        output = self.model.get_text_features(**self.placement.put(inputs))
        return self.family.vector(output)

    def count_long(self, texts: Sequence[str]) -> tuple[int, int]:
        """Return how many texts are too long, and how many tokens the model reads."""
        limit = self.text_settings["max_length"]
        tokens = self.tokenizer(self._cased(texts), verbose=False).input_ids
        return sum(len(ids) > limit for ids in tokens), limit

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() if self.family.lowercase else text for text in texts]


def load_dual_encoder(checkpoint: Checkpoint) -> HfDualEncoder:
    """Load a checkpoint with an architecture in `ENCODERS`."""
    family = ENCODERS[checkpoint.architecture]
    model = checkpoint.model(family.loader)
    images, tokenizer = checkpoint.part("AutoImageProcessor"), checkpoint.part("AutoTokenizer")
    settings = {
        "padding": family.padding,
        "truncation": True,
        "max_length": min(family.longest, model.config.text_config.max_position_embeddings),
    }
    try:  # one that cannot pad loads, and fails on every text
        tokenizer(["a", "a photo"], return_tensors="pt", **settings)
    except Exception as error:
        raise ModelError(f"{checkpoint.options.name} has no usable tokenizer: {error}") from error
    prepare = processor_preparation(images, checkpoint.options, checkpoint.placement)
    tower = build_tower(
        checkpoint.placement,
        checkpoint.options,
        model,
        lambda encoder, inputs: (family.vector(encoder.get_image_features(**inputs)),),
        prepare,
    )
    config = model.config
    info = checkpoint.info(
        family.name,
        tower.placement,
        preprocessing=processor_facts(images, tokenizer, settings | {"lowercase": family.lowercase})
        | prepare.facts,
        # Of a SigLIP the width of the text tower's last layer.
        dimension=int(
            getattr(config, "projection_dim", None)
            or getattr(config.text_config, "projection_size", None)
            or config.text_config.hidden_size
        ),
        **logit_line(model),
    )
    return HfDualEncoder(info, model, tower, tokenizer, settings, family)


def load_pair_scorer(checkpoint: Checkpoint) -> MatchingModel:
    """Load a checkpoint with an architecture in `SCORERS`."""
    architecture = checkpoint.architecture
    family = SCORERS[architecture]
    model = checkpoint.model(architecture)
    images, tokenizer = checkpoint.part("AutoImageProcessor"), checkpoint.part("AutoTokenizer")
    config = getattr(model.config, family.positions) if family.positions else model.config
    settings = {
        "padding": True,
        "truncation": True,
        "max_length": min(tokenizer.model_max_length, config.max_position_embeddings),
        "return_token_type_ids": False,
    }
    prepare = processor_preparation(images, checkpoint.options, checkpoint.placement)
    facts = processor_facts(images, tokenizer, settings) | prepare.facts
    placement = checkpoint.placement
    info = checkpoint.info(family.name, preprocessing=facts, scale=1.0, bias=0.0)
    batches = placement.batches(), placement.batches()
    return MatchingModel(info, model, family, prepare, tokenizer, settings, placement, *batches)


AT_ONCE = 16
FIRST_TOKENS, ALTERNATIVES = 8, 20
"""Places of an answer with log probabilities, and tokens at each."""

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


class AnswererFamily(NamedTuple):
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
    classes : bool
        Whether the answer is one of the model's classes.
    """

    name: str
    prompt: str = ""
    captions: bool = False
    chat: bool = False
    classes: bool = False


ANSWERERS = {
    "BlipForQuestionAnswering": AnswererFamily("blip-vqa", "{}"),
    "BlipForConditionalGeneration": AnswererFamily("blip-caption", captions=True),
    "Blip2ForConditionalGeneration": AnswererFamily(
        "blip-2", "Question: {} Answer:", captions=True
    ),
    "ViltForQuestionAnswering": AnswererFamily("vilt-vqa", "{}", classes=True),
}
DECODES_ALONE = {"blip-vqa", "blip-caption"}


@dataclass(frozen=True)
class HfAnswerer:
    """A transformers model that answers questions about images."""

    info: ModelInfo
    model: Any
    processor: Any
    family: AnswererFamily
    placement: Placement
    batches: Batches

    def answer(self, images: Images, question: str) -> list[str]:
        """Return the model's answer for each image.

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
        self._check(question)
        parts = self.batches.map(partial(self._answers, question), images)
        return [text for part in parts for text in part]

    def answer_with_probabilities(self, images: Images, question: str) -> list[ScoredAnswer]:
        """Return the model's answer for each image, with log probabilities of the first tokens.

        Parameters
        ----------
        images : sequence of n images
        question : str
            The same for all.

        Returns
        -------
        list of n ScoredAnswer
            Answers, as of `answer`; the log probabilities are of the 20 likeliest tokens at each
            of the first 8 places, None of a model whose answers are classes.

        Raises
        ------
        ModelError
            As `answer`.
        """
        if self.family.classes:
            return [ScoredAnswer(text, None) for text in self.answer(images, question)]
        self._check(question)
        parts = self.batches.map(partial(self._scored, question), images)
        return [answer for part in parts for answer in part]

    def _check(self, question: str) -> None:
        """Refuse a question that the model can't be asked, or a missing one that it needs."""
        family, asks = self.family, bool(question.strip())
        if not (family.chat or family.prompt if asks else family.captions):
            does = "only captions" if asks else "answers questions"
            raise ModelError(f"{self.info.name} {does}; the question was {question!r}.")

    def inputs(self, question: str, images: Images) -> Tensors:
        """Return the tensors of images, each with the same question."""
        pictures, words = pillow_images(images), question.strip()
        if self.family.chat:
            text = {"type": "text", "text": words}
            tensors = self.processor.apply_chat_template(
                [
                    [{"role": "user", "content": [{"type": "image", "image": picture}, text]}]
                    for picture in pictures
                ],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                processor_kwargs={"padding": True},
            )
        else:
            prompts = [self.family.prompt.format(words)] * len(pictures)
            texts = {"text": prompts, "padding": True} if words else {}
            tensors = self.processor(images=pictures, **texts, return_tensors="pt")
        return self.placement.put(tensors)

    def classify(self, inputs: Tensors) -> "Tensor":
        """Return the logits of a model with classes as answers, (n, classes)."""
        texts = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        return self.model(**texts, **vilt_places(self.model, inputs)).logits

    def _answers(self, question: str, images: Images) -> list[str]:
        inputs = self.inputs(question, images)
        with self.placement.torch.inference_mode():
            if self.family.classes:
                best = self.classify(inputs).argmax(dim=1).tolist()
                return [self.model.config.id2label[place] for place in best]
            tokens = self.model.generate(**inputs, **DECODING)
        return self._texts(inputs, tokens)

    def _scored(self, question: str, images: Images) -> list[ScoredAnswer]:
        inputs, decode = self.inputs(question, images), self.processor.batch_decode
        with self.placement.torch.inference_mode():
            generated = self.model.generate(
                **inputs, **DECODING, output_logits=True, return_dict_in_generate=True
            )
        logits = self.placement.torch.stack(generated.logits[:FIRST_TOKENS], dim=1)
        logs = logits.float().log_softmax(dim=-1)
        best = logs.topk(min(ALTERNATIVES, logs.shape[-1]), dim=-1)
        answers = []
        texts = self._texts(inputs, generated.sequences)
        for text, tokens, numbers in zip(texts, best.indices, best.values.tolist(), strict=True):
            places = []
            for ids, row in zip(tokens, numbers, strict=True):
                by_token: dict[str, float] = {}
                # Tokens that are parts of a character may share a text: the likeliest counts.
                for token, number in zip(decode(ids[:, None]), row, strict=True):
                    by_token.setdefault(token, number)
                places.append(by_token)
            answers.append(ScoredAnswer(text, tuple(places)))
        return answers

    def _texts(self, inputs: Tensors, tokens: "Tensor") -> list[str]:
        """Return the texts of generated tokens, without the question before them."""
        config, start = self.model.config, 0
        if not (self.family.name in DECODES_ALONE or config.get_text_config().is_encoder_decoder):
            # A decoder repeats the question. Of a caption, BLIP-2 writes the beginning itself.
            has_question = "input_ids" in inputs
            start = inputs["input_ids"].shape[1] if has_question else config.num_query_tokens + 1
        answers = self.processor.batch_decode(tokens[:, start:], skip_special_tokens=True)
        return [answer.strip() for answer in answers]


def load_answerer(checkpoint: Checkpoint) -> HfAnswerer:
    """Load a checkpoint of a model from image and text to text."""
    architecture = checkpoint.architecture
    processor = checkpoint.part("AutoProcessor")
    family = ANSWERERS.get(architecture)
    if family is None:
        if not getattr(processor, "chat_template", None):
            raise ModelError(
                f"{checkpoint.options.name} has no chat template. To do: wrap it in a factory with "
                "an answer method (python:module:factory)."
            )
        family = AnswererFamily(str(checkpoint.config.get("model_type", "chat")), chat=True)
    # A decoder goes on where the text ends, so shorter texts are filled up at their beginning.
    processor.tokenizer.padding_side = "left"
    model = checkpoint.model("AutoModelForImageTextToText" if family.chat else architecture)
    prompt = processor.chat_template if family.chat else family.prompt
    facts = processor_facts(processor.image_processor, processor.tokenizer)
    facts |= {"prompt": prompt, "decoding": DECODING}
    info = checkpoint.info(family.name, preprocessing=facts)
    batches = checkpoint.placement.batches(AT_ONCE)
    return HfAnswerer(info, model, processor, family, checkpoint.placement, batches)


def _preview(target: str) -> Preview:
    """Return the facts in config.json, from a folder or the local cache."""
    check_source(target)
    folder = Path(target).expanduser()
    path = folder / CONFIG if (folder / CONFIG).is_file() else cached_file(target, CONFIG)
    try:
        settings = _config(path.parent) if path else {}
    except ModelError:
        settings = {}
    architecture = _architecture(settings)
    if CLASSIFIER in architecture:
        names = settings.get("id2label") or {}
        labels = tuple(str(names[number]) for number in sorted(names, key=int))
        return Preview("classifier", labels, settings.get("hidden_size"))
    if architecture in ENCODERS:
        return Preview("encoder", (), settings.get("projection_dim"))
    if architecture in SCORERS:
        return Preview("scorer")
    return Preview("answerer" if architecture in ANSWERERS else None)


def _identify(target: str, options: Options) -> Mapping[str, Json]:
    placement = place(options.device, options.dtype, "hf")
    checkpoint = find_checkpoint(target, options, placement)
    facts = {"files": checkpoint.digests, "revision": commit(checkpoint.folder)}
    return facts | placement.identity


@adapter("hf", preview=_preview, identify=_identify, backends=True)
def load(target: str, options: Options) -> Model:
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
    checkpoint = find_checkpoint(target, options, placement)
    loader = _loader(checkpoint.architecture, library)
    if loader in (load_dual_encoder, load_classifier):
        placement = with_backend(placement, options, checkpoint.weights)
        checkpoint = replace(checkpoint, placement=placement)
    else:
        torch_only(options, f"a {checkpoint.architecture}")
    model: Model = loader(checkpoint)
    return model


def _loader(architecture: str, library: Any) -> Callable[[Checkpoint], Any]:
    if architecture in ENCODERS:
        return load_dual_encoder
    if architecture in SCORERS:
        return load_pair_scorer
    if CLASSIFIER in architecture:
        return load_classifier
    chat = library.models.auto.modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values()
    if architecture in ANSWERERS or architecture in chat:
        return load_answerer
    raise ModelError(
        f"equipoise cannot audit the architecture {architecture!r}. It takes "
        f"{', '.join(sorted([*ENCODERS, *SCORERS, *ANSWERERS]))}, …{CLASSIFIER}, and "
        "chat models that see. To do: wrap it in a factory (python:module:factory)."
    )
