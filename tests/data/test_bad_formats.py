"""Every bad file of a format has one error, which names the file, the place and the fix."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from equipoise.core import DataError
from equipoise.data import (
    combine,
    count_captions,
    find_format,
    read_celeba,
    read_coco_captions,
    read_coco_instances,
    read_dall_eval,
    read_dollar_street,
    read_domainnet,
    read_dsprites,
    read_genderbias_vl,
    read_pairs,
    read_pata,
    read_plain,
    read_social_counterfactuals,
    read_visogender,
    read_visual_genome,
)
from image_files import (
    CELEBA,
    COCO_CAPTIONS,
    COCO_INSTANCES,
    DOLLAR_STREET,
    PAIRS_QUESTIONS,
    PAIRS_SCENES,
    PLAIN,
    SOCIAL,
    VG_IMAGES,
    VG_OBJECTS,
    VISOGENDER,
    celeba,
    cifar,
    dall_eval,
    dsprites,
    genderbias_vl,
    occupation_questions,
    pairs,
    pata,
    write_csv,
    write_json,
)

PLACES = json.loads((Path(__file__).parent / "format_places.json").read_text("utf-8"))


def changed(value, *path, to):
    """A copy of some JSON with one value replaced; `...` removes it."""
    copy = json.loads(json.dumps(value))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if to is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return copy


def captions(*path, to):
    return lambda f: read_coco_captions(
        write_json(f / "captions.json", changed(COCO_CAPTIONS, *path, to=to))
    )


def instances(*path, to):
    return lambda f: read_coco_instances(
        write_json(f / "instances.json", changed(COCO_INSTANCES, *path, to=to))
    )


def objects(*path, to):
    return lambda f: read_visual_genome(
        write_json(f / "objects.json", changed(VG_OBJECTS, *path, to=to)),
        write_json(f / "image_data.json", VG_IMAGES),
    )


def text(read, name, content):
    def run(folder):
        raw = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(raw)
        return read(folder / name)

    return run


def cells(read, name, rows, *changes):
    def run(folder):
        copy = [list(row) for row in rows]
        for row, column, cell in changes:
            copy[row][column] = cell
        return read(write_csv(folder / name, copy, "\t" if name.endswith("tsv") else ","))

    return run


def captions_text(content):
    return text(read_coco_captions, "captions.json", content)


def dollar(*changes):
    return cells(read_dollar_street, "images_v2.csv", DOLLAR_STREET, *changes)


def nothing_shared(folder):
    return combine(
        read_plain(write_csv(folder / "a.csv", [["id"], ["1"]]), id="id"),
        read_plain(write_csv(folder / "b.csv", [["id"], ["2"]]), id="id"),
    )


def other_sprites(path):
    with np.load(dsprites(path)) as arrays:
        np.savez(path, latents_classes=arrays["latents_classes"] + 1)
    return path


def sprites_with(**arrays):
    """Write the file with other arrays."""

    def run(folder):
        with np.load(dsprites(folder / "d.npz")) as stored:
            np.savez(folder / "d.npz", **{name: stored[name] for name in SPRITES} | arrays)
        return read_dsprites(folder / "d.npz")

    return run


def sprites_compressed_otherwise(folder):
    with zipfile.ZipFile(dsprites(folder / "d.npz")) as stored:
        contents = {f"{name}.npy": stored.read(f"{name}.npy") for name in SPRITES}
    with zipfile.ZipFile(folder / "d.npz", "w", zipfile.ZIP_LZMA) as other:
        for name, content in contents.items():
            other.writestr(name, content)
    return read_dsprites(folder / "d.npz")


def sprites_damaged(folder):
    """Change the compressed bytes of the table."""
    path = dsprites(folder / "d.npz")
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("latents_classes.npy").header_offset
    content = bytearray(path.read_bytes())
    content[start + 60 : start + 90] = b"\xff" * 30
    path.write_bytes(content)
    return read_dsprites(path)


def cifar_names(*names):
    def run(folder):
        cifar(folder, {"batches.meta.txt": names}, {"data_batch_1": [0, 1]})
        return find_format("cifar").load(folder)

    return run


def pairs_without(folder):
    pairs(folder, PAIRS_SCENES)
    (folder / "status" / "bus" / "white_woman.png").unlink()
    return read_pairs(folder)


def pairs_asked(*row):
    def run(folder):
        questions = write_csv(folder / "questions.csv", [*PAIRS_QUESTIONS, row])
        return read_pairs(pairs(folder, PAIRS_SCENES), questions)

    return run


def questions_changed(*path, to):
    def run(folder):
        files = genderbias_vl(folder, None)
        write_json(files["counterfactual"], changed(occupation_questions("cf"), *path, to=to))
        return read_genderbias_vl(**files)

    return run


def pictures_twice(folder):
    (dall_eval(folder, {"A person": 2}) / "A_person" / "00.jpg").touch()
    return read_dall_eval(folder)


def not_numbered(folder):
    (dall_eval(folder, {"A person": 0}) / "A_person" / "first.png").touch()
    return read_dall_eval(folder)


SPRITES = ("imgs", "latents_classes")
WHOLE = json.dumps(COCO_CAPTIONS)
PLAIN_COLUMNS = {"id": "id", "columns": ("gender",), "label": "label"}
CASES = {
    "JSON: cut off in a record": captions_text(WHOLE[:600]),
    "JSON: another encoding": captions_text('{"images": [{"id": "é"}]}'.encode("latin-1")),
    "JSON: a list where an object belongs": captions_text("[1, 2]"),
    "JSON: nested too deep": captions_text('{"images": ' + "[" * 100_000),
    "COCO: no annotations": captions("annotations", to=...),
    "COCO: image twice": captions("images", 2, "id", to=139),
    "COCO: image not listed": captions("annotations", 1, "image_id", to=77),
    "COCO: caption is a list": captions("annotations", 3, "caption", to=["A man"]),
    "COCO: category not listed": instances("annotations", 0, "category_id", to=2),
    "COCO: two categories of one name": instances("categories", 1, "name", to="person"),
    "VG: image not in image_data": objects(0, "image_id", to=99),
    "PATA: another encoding": text(read_pata, "files.lst", "café_a_b_c|u".encode("latin-1")),
    "Dollar Street: topics run": dollar((2, 6, "[__import__('os')]")),
    "Dollar Street: rows differ": dollar((3, 2, "Sweden")),
    "Social: caption without attributes": cells(
        read_social_counterfactuals, "m.csv", SOCIAL, (1, 2, "A photo of a doctor")
    ),
    "Social: folder without Parquet": read_social_counterfactuals,
    "VisoGender: no addresses": cells(
        read_visogender, "OP.tsv", VISOGENDER, (0, 5, "Link")
    ),
    "PATA: three tags": lambda f: read_pata(pata(f, ["a_b_c_d|u", "car_black_male|u"])),
    "PAIRS: another folder": lambda f: read_pairs(dall_eval(f, {"A person": 1})),
    "PAIRS: a scene without a picture": pairs_without,
    "PAIRS: a question of no scene": pairs_asked("status", "beach", "Rich?", "rich", "poor"),
    "PAIRS: a question of no theme": pairs_asked("crime", "", "Rich?", "rich", "poor"),
    "PAIRS: an option missing": pairs_asked("status", "bus", "Rich?", "rich", ""),
    "GenderBias-VL: no options": questions_changed(1, "gt_choices", to=["Surgeon"]),
    "GenderBias-VL: a question twice": questions_changed(1, "id", to=1),
    "GenderBias-VL: another context": questions_changed(3, "occ", to="Pilot"),
    "GenderBias-VL: questions of something else": lambda f: read_genderbias_vl(
        write_json(f / "base.json", {"a": 1}), f / "cf.json"
    ),
    "DALL-Eval: no numbered picture": not_numbered,
    "DALL-Eval: a picture twice": pictures_twice,
    "DALL-Eval: answers about clothing": text(
        read_dall_eval, "attributes.json", '{"A man": [["no", "yes"]]}'
    ),
    "DALL-Eval: answers without prompts": text(read_dall_eval, "gender.json", '["male"]'),
    "CelebA: cut off": lambda f: text(
        read_celeba, "list.txt", celeba(f, CELEBA).read_text()[:-24]
    )(f),
    "DomainNet: two numbers of a class": text(
        read_domainnet, "clipart_train.txt", "a/zebra/1.jpg 0\na/zebra/2.jpg 1\n"
    ),
    "DomainNet: folder without lists": read_domainnet,
    "dSprites: other shapes": lambda f: read_dsprites(other_sprites(f / "d.npz")),
    "dSprites: no dimensions": sprites_with(latents_classes=np.int64(3)),
    "dSprites: no rows": sprites_with(imgs=np.zeros((0, 64, 64), np.uint8)),
    "dSprites: records": sprites_with(latents_classes=np.zeros((24, 6), [("a", "i4")])),
    "dSprites: numbers that are not whole": sprites_with(latents_classes=np.full((24, 6), np.nan)),
    "dSprites: another compression": sprites_compressed_otherwise,
    "dSprites: damaged": sprites_damaged,
    "CIFAR: two classes of one name": cifar_names("a cat", "a_cat"),
    "CIFAR: a class without a name": cifar_names("", "dog"),
    "DomainNet: a class without a number": text(
        read_domainnet, "clipart_train.txt", "a/cat/1.jpg 0\na/zebra/1.jpg x\n"
    ),
    "captions: no file": lambda f: count_captions(f / "c.json", {"a": ["a"]}, {"b": ["b"]}),
    "captions: nested too deep": text(
        lambda path: count_captions(path, {"a": ["a"]}, {"b": ["b"]}), "c.json", "[" * 100_000
    ),
    "dSprites: cut off": lambda f: text(
        read_dsprites, "d.npz", dsprites(f / "d.npz").read_bytes()[:-40]
    )(f),
    "plain: id twice without labels": cells(
        lambda path: read_plain(path, id="id", columns=("gender",)), "p.csv", PLAIN
    ),
    "plain: rows differ": cells(
        lambda path: read_plain(path, **PLAIN_COLUMNS), "p.csv", PLAIN, (3, 1, "M")
    ),
    "combine: nothing shared": nothing_shared,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_has_one_error_with_its_place(name, tmp_path):
    with pytest.raises(DataError) as raised:
        CASES[name](tmp_path)
    error = raised.value
    file = str(error.file).replace(f"{tmp_path}/", "").replace(str(tmp_path), "")
    assert [file, error.column, error.row] == PLACES[name]
    assert error.fix
