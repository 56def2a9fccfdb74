"""Tiny random checkpoints of the real classes, written as `save_pretrained` writes them."""

import json
import shutil
import string

import numpy as np

SEED = 20


def images():
    """Images of odd sizes: wide, high, tiny, square, one of 3 rows, grey ones as arrays."""
    generator = np.random.default_rng(7)
    sizes = [(37, 61), (90, 20), (5, 7), (32, 32), (3, 40), (64, 48)]
    pictures = [generator.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]
    grey = generator.integers(0, 256, (41, 23), dtype=np.uint8)
    return [*pictures, np.repeat(grey[:, :, None], 3, axis=2)]


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def in_hub_cache(tmp_path, monkeypatch, folder=None):
    """Keep a folder as owner/tiny in a cache of the hub of its own, without a network."""
    import huggingface_hub

    repository = tmp_path / "cache" / "models--owner--tiny"
    if folder is not None:
        (repository / "snapshots").mkdir(parents=True)
        (repository / "snapshots" / COMMIT).symlink_to(folder)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


TEXTS = [
    "a photo of a doctor",
    "nurse",
    "the man with the red circle in a photo of a square",
    "woman and man",
    "a",
    "person person person",
    "blue",
]


def _seeded(model, config):
    import torch

    torch.manual_seed(SEED)
    return model(config).eval()


def _save(folder, *parts):
    for part in parts:
        part.save_pretrained(folder)
    return folder


def clip_tokenizer(length):
    """Letters, alone and at the end of a word: enough for a CLIP to spell every text."""
    from transformers import CLIPTokenizer

    letters = [*string.ascii_lowercase, *string.digits, ".", ",", "?", ":"]
    ends = (f"{letter}</w>" for letter in letters)
    tokens = ["<|startoftext|>", "<|endoftext|>", *letters, *ends]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=length)


def clip(folder, width=24):
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    tokenizer = clip_tokenizer(64)
    config = CLIPConfig(
        text_config=TOWER
        | {
            "vocab_size": len(tokenizer),
            "max_position_embeddings": 64,
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": 1,
        },
        vision_config=VISION,
        projection_dim=width,
    )
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SQUARE)
    return _save(folder, _seeded(CLIPModel, config), processor, tokenizer)


TOWER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
SQUARE = {"height": 32, "width": 32}
VISION = TOWER | {"image_size": 32, "patch_size": 8}
QFORMER = TOWER | {"encoder_hidden_size": 32, "initializer_range": 0.3}
START = {"bos_token": "<s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def _words_tokenizer(length, **special):
    """A tokenizer of whole words, as any library of tokenizers can write one."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = sorted({word for text in TEXTS for word in text.split()} | {"what", "is", "this", "?"})
    tokens = [*special.values(), *words]
    tokenizer = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if "eos_token" in special:
        end = special["eos_token"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {end}", special_tokens=[(end, tokens.index(end))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=length, padding_side="right", **special
    )


def _siglip(folder, family, processor, **vision):
    import transformers

    tokenizer = _words_tokenizer(64, eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    text = TOWER | {"vocab_size": len(tokenizer), "max_position_embeddings": 64}
    text |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1}
    config = getattr(transformers, f"{family}Config")(
        text_config=text, vision_config=TOWER | {"patch_size": 8} | vision
    )
    model = _seeded(getattr(transformers, f"{family}Model"), config)
    model.logit_scale.data.fill_(2.0)
    model.logit_bias.data.fill_(-3.0)
    return _save(folder, model, processor, tokenizer)


def siglip(folder):
    from transformers import SiglipImageProcessorPil

    return _siglip(folder, "Siglip", SiglipImageProcessorPil(size=SQUARE), image_size=32)


def siglip2(folder):
    from transformers import Siglip2ImageProcessorPil

    processor = Siglip2ImageProcessorPil(patch_size=8, max_num_patches=16)
    return _siglip(folder, "Siglip2", processor, num_patches=16)


def _bert_tokenizer(length):
    from transformers import BertTokenizer

    words = sorted({word for text in TEXTS for word in text.split()})
    letters = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys([*special, *words, *letters]))}
    tokenizer = BertTokenizer(vocab=vocabulary, model_max_length=length)
    tokenizer.add_tokens(["[DEC]", "[ENC]"], special_tokens=True)
    return tokenizer


def flava(folder):
    from transformers import FlavaConfig, FlavaImageProcessorPil, FlavaModel

    tokenizer = _bert_tokenizer(77)
    config = FlavaConfig(
        image_config=VISION,
        text_config=TOWER | {"vocab_size": len(tokenizer), "max_position_embeddings": 80},
        multimodal_config=TOWER,
        hidden_size=32,
        projection_dim=24,
    )
    processor = FlavaImageProcessorPil(size=SQUARE, crop_size=SQUARE)
    return _save(folder, _seeded(FlavaModel, config), processor, tokenizer)


def _blip_config(tokenizer):
    from transformers import BlipConfig

    special = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 64,
        "bos_token_id": tokenizer.convert_tokens_to_ids("[DEC]"),
        "sep_token_id": tokenizer.sep_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.3,
        "encoder_hidden_size": 32,
        "projection_dim": 24,
    }
    vision = VISION | {"initializer_range": 0.3}
    return BlipConfig(text_config=TOWER | special, vision_config=vision, image_text_hidden_size=24)


def _blip(folder, kind):
    import transformers

    tokenizer = _bert_tokenizer(64)
    model = _seeded(getattr(transformers, kind), _blip_config(tokenizer))
    images = transformers.BlipImageProcessorPil(size=SQUARE)
    return _save(folder, model, transformers.BlipProcessor(images, tokenizer))


def blip_matching(folder):
    return _blip(folder, "BlipForImageTextRetrieval")


def blip_vqa(folder):
    return _blip(folder, "BlipForQuestionAnswering")


def blip_caption(folder):
    return _blip(folder, "BlipForConditionalGeneration")


def roberta_tokenizer():
    from transformers import RobertaTokenizer

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "\u0120"]
    vocabulary = {token: i for i, token in enumerate([*special, *string.ascii_lowercase])}
    return RobertaTokenizer(vocab=vocabulary, merges=[], model_max_length=60)


def bridgetower(folder):
    from transformers import (
        BridgeTowerConfig,
        BridgeTowerForImageAndTextRetrieval,
        BridgeTowerImageProcessorPil,
        BridgeTowerProcessor,
    )

    tokenizer = roberta_tokenizer()
    config = BridgeTowerConfig(
        hidden_size=32,
        num_attention_heads=2,
        num_hidden_layers=2,
        text_config=TOWER | {"vocab_size": len(tokenizer), "max_position_embeddings": 64},
        vision_config={
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "image_size": 32,
            "patch_size": 8,
        },
    )
    images = BridgeTowerImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"shortest_edge": 32}
    )
    model = _seeded(BridgeTowerForImageAndTextRetrieval, config)
    return _save(folder, model, BridgeTowerProcessor(images, tokenizer))


def _vilt(folder, kind, **more):
    import transformers

    tokenizer = _bert_tokenizer(40)
    config = transformers.ViltConfig(
        **TOWER, image_size=64, patch_size=8, vocab_size=len(tokenizer), initializer_range=0.3,
        max_position_embeddings=40, **more,
    )  # fmt: skip
    images = transformers.ViltImageProcessorPil(size={"shortest_edge": 32}, size_divisor=8)
    model = _seeded(getattr(transformers, kind), config)
    for name in ("cls_token", "position_embeddings"):  # which begin as zeros
        getattr(model.vilt.embeddings, name).data.normal_()
    return _save(folder, model, transformers.ViltProcessor(images, tokenizer))


def vilt_matching(folder):
    return _vilt(folder, "ViltForImageAndTextRetrieval")


def vilt_vqa(folder):
    answers = {place: f"answer {place}" for place in range(40)}
    ids = {name: place for place, name in answers.items()}
    return _vilt(folder, "ViltForQuestionAnswering", id2label=answers, label2id=ids)


LABELS = {0: "doctor", 1: "nurse", 2: "farmer", 3: "singer", 4: "cook"}


def _classifier(folder, config, kind, labels=LABELS, **more):
    import transformers

    config.id2label, config.label2id = labels, {name: i for i, name in labels.items()}
    for name, value in more.items():
        setattr(config, name, value)
    images = transformers.ViTImageProcessorPil(size=SQUARE)
    return _save(folder, _seeded(getattr(transformers, kind), config), images)


def vit_multi_label(folder):
    return vit(folder, problem_type="multi_label_classification")


def vit(folder, **more):
    from transformers import ViTConfig

    config = ViTConfig(**VISION, initializer_range=0.2)
    return _classifier(folder, config, "ViTForImageClassification", **more)


def resnet(folder):
    from transformers import ResNetConfig

    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    return _classifier(folder, config, "ResNetForImageClassification")


def convnext(folder):
    from transformers import ConvNextConfig

    config = ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2)
    return _classifier(folder, config, "ConvNextForImageClassification")


def blip_2(folder):
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        BlipImageProcessorPil,
        OPTConfig,
    )

    tokenizer = _words_tokenizer(64, **START)
    processor = Blip2Processor(BlipImageProcessorPil(size=SQUARE), tokenizer, num_query_tokens=4)
    text = OPTConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        word_embed_proj_dim=32,
        ffn_dim=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.convert_tokens_to_ids("doctor"),
        init_std=0.3,
    )
    config = Blip2Config(
        vision_config=VISION | {"initializer_range": 0.3},
        qformer_config=QFORMER,
        text_config=text.to_dict(),
        num_query_tokens=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    model = _seeded(Blip2ForConditionalGeneration, config)
    return _save(folder, model, processor)


def blip_2_matching(folder):
    import transformers

    tokenizer = _bert_tokenizer(64)
    processor = transformers.Blip2Processor(
        transformers.BlipImageProcessorPil(size=SQUARE), tokenizer, num_query_tokens=4
    )
    words = {"vocab_size": len(processor.tokenizer), "use_qformer_text_input": True}
    config = transformers.Blip2Config(
        vision_config=VISION | {"initializer_range": 0.3},
        qformer_config=QFORMER | words | {"max_position_embeddings": 64},
        num_query_tokens=4,
        image_text_hidden_size=24,
        image_token_index=processor.tokenizer.convert_tokens_to_ids("<image>"),
    )
    model = _seeded(transformers.Blip2ForImageTextRetrieval, config)
    model.query_tokens.data.normal_()
    return _save(folder, model, processor)


CHAT = (
    "{% for message in messages %}{{ message['role'] }} : {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }} {% endif %}{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}assistant :{% endif %}"
)


def llava(folder):
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    tokenizer = _words_tokenizer(256, **START, image_token="<image>")
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**VISION).to_dict(),
        text_config=LlamaConfig(
            **TOWER,
            vocab_size=len(tokenizer),
            initializer_range=0.3,
            bos_token_id=tokenizer.bos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.convert_tokens_to_ids("doctor"),
        ).to_dict(),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
    )
    images = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=SQUARE)
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT,
    )
    return _save(folder, _seeded(LlavaForConditionalGeneration, config), processor)


QWEN_CHAT = (
    "{% for message in messages %}{{ message['role'] }} : {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}"
    "{{ part['text'] }} {% endif %}{% endfor %}{% endfor %}assistant :"
)


def qwen2_vl(folder):
    from transformers import (
        Qwen2VLConfig,
        Qwen2VLForConditionalGeneration,
        Qwen2VLImageProcessor,
        Qwen2VLProcessor,
        Qwen2VLVideoProcessor,
    )

    special = ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"]
    tokenizer = _words_tokenizer(512, pad_token="<pad>", unk_token="<unk>")
    tokenizer.add_tokens(special, special_tokens=True)
    image, video, start, end = map(tokenizer.convert_tokens_to_ids, special)
    text = TOWER | {
        "num_key_value_heads": 2,
        "vocab_size": len(tokenizer),
        "initializer_range": 0.3,
        "rope_parameters": {
            "rope_type": "default",
            "mrope_section": [2, 3, 3],
            "rope_theta": 10000.0,
        },
        "bos_token_id": tokenizer.pad_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.convert_tokens_to_ids("doctor"),
    }
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 2}
    config = Qwen2VLConfig(
        text_config=text,
        vision_config=vision | {"patch_size": 8, "mlp_ratio": 2},
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
    )
    # The number of an image's tokens depends on its size, within these.
    images = Qwen2VLImageProcessor(patch_size=8, min_pixels=256, max_pixels=4096)
    videos = Qwen2VLVideoProcessor(patch_size=8)
    processor = Qwen2VLProcessor(images, tokenizer, videos, chat_template=QWEN_CHAT)
    return _save(folder, _seeded(Qwen2VLForConditionalGeneration, config), processor)


OPEN_CLIP = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "patch_size": 8, "head_width": 16},
    "text_cfg": {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}
PREPARE = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


def open_clip(folder, **more):
    """Write a CLIP of open_clip as a folder; with `init_logit_bias`, one of sigmoids."""
    import open_clip as library
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(3)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"model_cfg": OPEN_CLIP | more, "preprocess_cfg": PREPARE}
    (folder / "open_clip_config.json").write_text(json.dumps(settings))
    weights = library.CLIP(**OPEN_CLIP, **more).state_dict()
    tensors = {name: value.contiguous() for name, value in weights.items()}
    save_file(tensors, folder / "open_clip_model.safetensors")
    return folder


def timm(folder, labels=LABELS):
    import timm as library
    import torch

    torch.manual_seed(5)
    tiny = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 2}
    model = library.create_model("vit_tiny_patch16_224", num_classes=len(labels), **tiny)
    library.models.save_for_hf(
        model,
        str(folder),
        model_config={"label_names": [*labels.values()]},
        model_args=tiny,
        safe_serialization=True,
    )
    return folder


def onnx(folder):
    from equipoise.planted.colours.models import WEIGHTS
    from equipoise.planted.colours.render import SHAPES

    path = folder / "shapes.onnx"
    shutil.copy(WEIGHTS / "complete.onnx", path)
    path.with_suffix(".labels.txt").write_text("\n".join(SHAPES) + "\n\n")
    return path


def graph_of_means(*outputs, sides=(4, 4), channels=3):
    """Return a graph that outputs mean colours of images; one of its tensors is an attribute."""
    import onnx as library

    make, kind = library.helper, library.TensorProto
    constant = make.make_tensor("one", kind.FLOAT, [1], np.ones(1, "<f4").tobytes(), raw=True)
    nodes = [
        make.make_node("Cast", ["images"], ["floats"], to=kind.FLOAT),
        make.make_node("ReduceMean", ["floats", "axes"], ["means"], keepdims=0),
        make.make_node("Mul", ["means", "weights"], ["weighted"]),
        make.make_node("Constant", [], ["one"], value=constant),
        *(make.make_node("Mul", ["weighted", "one"], [name]) for name, _ in outputs),
    ]
    graph = make.make_graph(
        nodes,
        "means",
        [make.make_tensor_value_info("images", kind.UINT8, ["n", *sides, channels])],
        [make.make_tensor_value_info(name, kind.FLOAT, shape) for name, shape in outputs],
        [
            library.numpy_helper.from_array(np.ones(1, np.float32), "weights"),
            make.make_tensor("axes", kind.INT64, [2], [1, 2]),
        ],
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9)


FAMILIES = {
    make_checkpoint.__name__: make_checkpoint
    for make_checkpoint in (
        clip,
        siglip,
        siglip2,
        flava,
        blip_matching,
        bridgetower,
        blip_2_matching,
        vilt_matching,
        vilt_vqa,
        vit,
        vit_multi_label,
        resnet,
        convnext,
        blip_2,
        blip_vqa,
        blip_caption,
        llava,
        qwen2_vl,
        open_clip,
        timm,
        onnx,
    )
}
