"""Constructed runs: tables of seeded rows whose truth is known, as configs of audits."""

import numpy as np
import polars as pl

DRAWS = {"resampling": {"replicates": 200, "permutations": 1999, "seed": 5}}
JOBS = ("chef", "nurse", "pilot", "tailor")


class Rows:
    """Images with attributes and true classes, and a model that is right with a share of each.

    Parameters
    ----------
    seed : int
    attributes : mapping of str to sequence of str
        One value for each image.
    truth : sequence of str, optional
        True class of each image; drawn evenly from `classes` unless given.
    """

    def __init__(self, seed, attributes, classes=JOBS, truth=None):
        self.rng = np.random.default_rng(seed)
        self.attributes = {name: np.asarray(values) for name, values in attributes.items()}
        self.n = len(next(iter(self.attributes.values())))
        self.classes = np.asarray(classes)
        self.truth = self.rng.choice(classes, self.n) if truth is None else np.asarray(truth)

    def where(self, **cell):
        """Return the rows of a cell."""
        columns = {**self.attributes, "truth": self.truth}
        return np.all([columns[name] == value for name, value in cell.items()], axis=0)

    def predicted(self, right, planted=(), *, to_next=False):
        """Return predictions right with a probability, another one in each planted cell.

        Mistakes are spread over the other classes, or all go to the next class.
        """
        share = np.full(self.n, right)
        for cell, cell_share in planted:
            share[self.where(**cell)] = cell_share
        place = np.searchsorted(self.classes, self.truth)
        steps = 1 if to_next else self.rng.integers(1, len(self.classes), self.n)
        wrong = (place + steps) % len(self.classes)
        return np.where(self.rng.random(self.n) < share, self.truth, self.classes[wrong])

    def config(self, predicted, groups=None, *, positive=None, **models):
        """Return a config of predictions of one or more models."""
        columns = {"m": predicted, **models} if predicted is not None else models
        table = pl.DataFrame({
            "id": [f"i{place:05d}" for place in range(self.n)], **self.attributes,
            "truth": self.truth, **columns,
        })  # fmt: skip
        data = {"table": table, "id": "id", "target": "truth"}
        data |= {"groups": groups or [*self.attributes]}
        data |= {} if positive is None else {"positive": positive}
        sections = {name: {"table": table, "prediction": name} for name in columns}
        return {"audit": "predictions", "data": data, "models": sections, **DRAWS}


def balanced(**sizes):
    """Return group labels, as many of each as its size."""
    return np.repeat([*sizes], [*sizes.values()])


def crossed(per_cell, **attributes):
    """Return columns in which every combination of values has as many rows."""
    names = [*attributes]
    grid = np.array(np.meshgrid(*attributes.values(), indexing="ij")).reshape(len(names), -1)
    return {name: np.repeat(values, per_cell) for name, values in zip(names, grid, strict=True)}


GENDER = {"gender": ("man", "woman")}
PEOPLE = {**GENDER, "age": ("middle", "old", "young")}
BOTH = ["gender", "age", ["gender", "age"]]


def one_cell():
    rows = Rows(1, crossed(400, **PEOPLE))
    return rows.config(rows.predicted(0.92, [({"gender": "woman", "truth": "nurse"}, 0.6)]), BOTH)


def two_causes():
    rows = Rows(2, crossed(400, **PEOPLE))
    planted = [
        ({"gender": "woman", "truth": "chef"}, 0.6), ({"age": "old", "truth": "pilot"}, 0.55),
    ]  # fmt: skip
    return rows.config(rows.predicted(0.92, planted), BOTH)


def intersection():
    rows = Rows(3, crossed(400, **PEOPLE))
    # The other ages of women and the old men make up for it, so both attributes are even.
    planted = [
        ({"gender": "woman"}, 0.95), ({"age": "old"}, 0.95),
        ({"gender": "woman", "age": "old"}, 0.71), ({"gender": "man", "age": "young"}, 0.83),
        ({"gender": "man", "age": "middle"}, 0.83),
    ]  # fmt: skip
    return rows.config(rows.predicted(0.92, planted), BOTH)


def main_effect():
    rows = Rows(4, crossed(250, **GENDER, hair=("black", "brown", "grey", "red")))
    predicted = rows.predicted(0.92, [({"gender": "woman"}, 0.78)])
    return rows.config(predicted, ["hair", "gender", ["gender", "hair"]])


def noisy_copy(seed=50):
    """Women are right less often; hair is a copy of gender in which 3 % of the values differ."""
    rng = np.random.default_rng(seed)
    woman = rng.random(2400) < 0.5
    long = woman ^ (rng.random(2400) < 0.03)
    people = {
        "gender": np.where(woman, "woman", "man"), "hair": np.where(long, "long", "short"),
    }  # fmt: skip
    rows = Rows(seed, people, JOBS[:2])
    names = [*people]
    return rows.config(rows.predicted(0.9, [({"gender": "woman"}, 0.74)]), [*names, names])


def additive():
    """Women cost ten points and dark skin costs ten points, and both together twenty."""
    rows = Rows(31, crossed(1000, **GENDER, skin=("dark", "light")))
    planted = [
        ({"gender": "man", "skin": "dark"}, 0.85), ({"gender": "woman", "skin": "light"}, 0.85),
        ({"gender": "woman", "skin": "dark"}, 0.75),
    ]  # fmt: skip
    return rows.config(rows.predicted(0.95, planted), ["gender", "skin", ["gender", "skin"]])


def one_group_of_three(odd, level):
    """Two groups alike, and a third that is right more or less often."""
    rows = Rows(32, {"origin": balanced(east=1000, north=1000, west=1000)})
    return rows.config(rows.predicted(level, [({"origin": "west"}, odd)]))


def refused_alone():
    """No answer for 120 of 400 women; answers are right as often for both genders."""
    rows = Rows(33, {"gender": balanced(man=400, woman=400)})
    said = rows.predicted(0.9).astype(object)
    said[400:520] = "I can't help with that."
    config = rows.config(said)
    config["models"]["m"]["refused"] = ["I can't help with that."]
    return config


def opposite_models():
    """One model is right less often for women, the other for men."""
    rows = Rows(34, {"gender": balanced(man=1000, woman=1000)})
    harsh = {
        f"harsh on {group}": rows.predicted(0.92, [({"gender": group}, 0.77)])
        for group in GENDER["gender"]
    }
    return rows.config(None, **harsh)


def labels_in_part():
    """Labels have half of the 40 points between the shares of men and women that get a yes."""
    gender = balanced(man=500, woman=500)
    truth = np.r_[["yes"] * 200, ["no"] * 300, ["yes"] * 300, ["no"] * 200]
    predicted = np.r_[["yes"] * 160, ["no"] * 340, ["yes"] * 360, ["no"] * 140]
    return Rows(35, {"gender": gender}, ("no", "yes"), truth).config(predicted, positive="yes")


def mixed_classes():
    """A model whose rates are those of both genders, and genders of other base rates."""
    gender = balanced(man=6000, woman=6000)
    truth = np.r_[["yes"] * 5100, ["no"] * 900, ["yes"] * 900, ["no"] * 5100]
    rows = Rows(8, {"gender": gender}, ("no", "yes"), truth)
    predicted = rows.predicted(0.97, [({"truth": "no"}, 0.72)])
    return rows.config(predicted, positive="yes")


def simpson():
    """The model is right more often for women, and less often for women of either skin."""
    sizes = {("man", "dark"): 1200, ("man", "light"): 300, ("woman", "dark"): 300}
    sizes |= {("woman", "light"): 1200}
    people = np.repeat([*sizes], [*sizes.values()], axis=0)
    rows = Rows(9, {"gender": people[:, 0], "skin": people[:, 1]})
    planted = [
        ({"gender": "man", "skin": "dark"}, 0.68), ({"gender": "man", "skin": "light"}, 0.97),
        ({"gender": "woman", "skin": "dark"}, 0.62), ({"gender": "woman", "skin": "light"}, 0.91),
    ]  # fmt: skip
    return rows.config(rows.predicted(0.9, planted), ["gender", "skin"])


def fair():
    rows = Rows(10, {"income": balanced(high=5000, low=5000, middle=5000)})
    return rows.config(rows.predicted(0.88))


def few():
    rows = Rows(11, {"gender": balanced(man=45, woman=45)})
    return rows.config(rows.predicted(0.85))


def one_answer():
    rows = Rows(12, {"gender": balanced(man=600, woman=600)})
    return rows.config(np.full(rows.n, "chef"))


def labels_alone():
    """A model without an error; base rates of women and men differ by 40 points."""
    gender = balanced(man=400, woman=400)
    truth = np.r_[["yes"] * 280, ["no"] * 120, ["yes"] * 120, ["no"] * 280]
    rows = Rows(13, {"gender": gender}, ("no", "yes"), truth)
    return rows.config(truth, positive="yes")


def rare_errors():
    """False matches of 10 in 10,000 against 100 in 10,000, and no other error.

    With as many true matches, no difference in points is large enough to matter.
    """
    truth = np.tile(["no"] * 10_000 + ["yes"] * 10_000, 2)
    rows = Rows(14, {"ethnicity": balanced(east=20_000, west=20_000)}, ("no", "yes"), truth)
    predicted = truth.copy()
    predicted[:100], predicted[20_000:20_010] = "yes", "yes"
    return rows.config(predicted, positive="yes")


def three_classes():
    """Two groups of a size, right for 780 and 860 of 1,000, in every class alike."""
    truth = np.tile(np.resize(JOBS[:3], 1000), 2)
    rows = Rows(25, {"gender": balanced(woman=1000, man=1000)}, JOBS[:3], truth)
    place, order = np.searchsorted(JOBS, truth), np.arange(rows.n) % 1000
    # 7 is prime to 1,000, so mistakes go to every class and both others.
    wrong = order * 7 % 1000 < np.where(rows.where(gender="woman"), 220, 140)
    labels = np.asarray(JOBS[:3])[(place + 1 + order // 3 % 2) % 3]
    return rows.config(np.where(wrong, labels, truth))


def ties():
    """Two groups with equal numbers in every cell."""
    truth = np.tile(np.repeat(JOBS, 100), 2)
    rows = Rows(15, {"gender": balanced(man=400, woman=400)}, truth=truth)
    predicted = truth.copy()
    predicted[::10] = "chef"
    return rows.config(predicted)


def two_models():
    """Two models equally accurate for each group; in one, mistakes depend on the group."""
    truth = np.tile(np.repeat(JOBS, 200), 2)
    rows = Rows(16, {"gender": balanced(man=800, woman=800)}, truth=truth)
    place, row = np.searchsorted(JOBS, truth), np.arange(rows.n)
    wrong = row % 10 < 3
    spread = np.where(row // 10 % 2 == 0, 1, 3)
    sided = np.where(rows.attributes["gender"] == "man", 1, 3)
    labels = np.array(JOBS)
    even, skewed = (np.where(wrong, labels[(place + by) % 4], truth) for by in (spread, sided))
    return rows.config(None, even=even, skewed=skewed)


def sentinel():
    """Skin types 1 to 3, and -1 where nobody knows; images of -1 are unlike the others."""
    skin = np.repeat(["-1", "1", "2", "3"], [300, 500, 500, 500])
    rows = Rows(17, {"skin_type": skin})
    return rows.config(rows.predicted(0.92, [({"skin_type": "-1"}, 0.4)]))


def small_group():
    rows = Rows(18, {"origin": balanced(east=900, few=9, west=900)})
    planted = [({"origin": "few"}, 0.0), ({"origin": "west"}, 0.75)]
    return rows.config(rows.predicted(0.92, planted))


def refusal():
    """No answer for 117 of 400 women; answers are right less often for men."""
    gender = balanced(man=400, woman=400)
    rows = Rows(6, {"gender": gender})
    said = rows.predicted(0.9, [({"gender": "man"}, 0.8)]).astype(object)
    said[400:517] = "I can't help with that."
    config = rows.config(said)
    config["models"]["m"]["refused"] = ["I can't help with that."]
    return config


def answers(said, expected=None, **attributes):
    """Return a config of answers without a truth."""
    n = len(said)
    table = pl.DataFrame({"id": [f"i{k:04d}" for k in range(n)], **attributes, "said": said})
    return {
        "audit": "answers",
        "data": {"table": table, "id": "id", "groups": [*attributes]},
        "models": {"m": {"table": table, "answer": "said"}},
        **({"expected": expected} if expected else {}),
        **DRAWS,
    }


def level():
    """Male for 90 % of neutral pictures, whatever their scene."""
    rng = np.random.default_rng(7)
    said = np.where(rng.random(1200) < 0.9, "male", "female")
    even = {"male": 0.5, "female": 0.5}
    return answers(said, even, scene=balanced(indoor=600, outdoor=600))


def neutral_answers():
    """Male and female equally often, in every scene."""
    rng = np.random.default_rng(19)
    said = rng.permutation(np.repeat(["male", "female"], 2000))
    return answers(said, scene=balanced(indoor=2000, outdoor=2000))


def answers_of_a_group():
    """Women in uniform are called nurse, men doctor; other answers are alike."""
    rng = np.random.default_rng(30)
    said = rng.choice(["chef", "teacher"], 1200)
    uniform = np.arange(1200) % 2 == 0
    said = np.where(uniform, np.where(np.arange(1200) < 600, "doctor", "nurse"), said)
    other = np.where(rng.random(1200) < 0.25, rng.choice(["doctor", "nurse"], 1200), said)
    return answers(np.where(uniform, other, said), gender=balanced(man=600, woman=600))


def vectors_of(ids, values):
    """Return vectors as a section of a config."""
    table = pl.DataFrame({"id": [*ids], "v": np.asarray(values, dtype=np.float32)})
    return {"file": table, "id": "id", "column": "v"}


def prompted(kind, leans, scenes=20, seed=20, **sections):
    """Two images of each scene of every job, and prompts that lean to men by a number each."""
    rng, names = np.random.default_rng(seed), [*leans]
    of = np.repeat(np.arange(len(names)), 2 * scenes)
    images = pl.DataFrame({
        "id": [f"i{k}" for k in range(len(of))], "job": np.array(names)[of],
        "scene": [f"s{k // 2}" for k in range(len(of))],
        "gender": ["man", "woman"] * (len(of) // 2),
    })  # fmt: skip
    vectors = 3 * np.eye(len(names) + 1)[1 + of] + 0.3 * rng.normal(size=(len(of), len(names) + 1))
    vectors[:, 0] += np.tile([1.0, -1.0], len(of) // 2)
    texts = 3 * np.eye(len(names) + 1)[1:]
    texts[:, 0] = [*leans.values()]
    queries = pl.DataFrame({"id": names, "job": names})
    model = {"images": vectors_of(images["id"], vectors), "queries": vectors_of(names, texts)}
    data = {"images": {"table": images, "id": "id"}, "groups": ["gender"], "subject": "job"}
    data |= {"sets": "scene"} if kind != "counterfactuals" else {"set": "scene"}
    return {
        "audit": kind, "data": data, "models": {"m": model},
        "queries": {"table": queries, "id": "id", "subject": "job"}, **DRAWS, **sections,
    }  # fmt: skip


def opposite_preferences():
    """Three prompts prefer men, three women, as strongly: their mean is nothing."""
    leans = dict(zip(("builder", "engineer", "pilot", "baker", "nurse", "tailor"),
                     (0.9, 0.9, 0.9, -0.9, -0.9, -0.9), strict=True))  # fmt: skip
    return prompted("retrieval", leans, ranking={"k": 12, "curves": False})


def one_prompt():
    """One prompt of four prefers men."""
    leans = {"builder": 1.2, "chef": 0.0, "nurse": 0.0, "tailor": 0.0}
    model = prompted("similarity", leans)
    model["models"]["m"]["scale"] = 10.0
    return model


def ranked_sets(leans=None, seed=20):
    """Every prompt shows men first among counterfactual images."""
    leans = leans or {f"job {k}": 0.8 for k in range(8)}
    config = prompted("counterfactuals", leans, seed=seed)
    images = config["data"]["images"]["table"].rename({"job": "subject", "scene": "set"})
    queries = config["queries"]["table"].rename({"job": "subject"})
    config["data"] = {"images": {"table": images, "id": "id"}, "groups": ["gender"]}
    config["queries"] = {"table": queries, "id": "id", "subject": "subject"}
    return config


def text_to_image():
    """A generator that shows men as builders; images of other jobs show both alike."""
    rng = np.random.default_rng(21)
    men = {"builder": 0.95, "chef": 0.5, "nurse": 0.5, "tailor": 0.5}
    jobs = np.repeat([*men], 100)
    shown = np.concatenate([
        rng.permutation(np.repeat(["man", "woman"], [round(100 * share), round(100 - 100 * share)]))
        for share in men.values()
    ])  # fmt: skip
    return generated(jobs, shown)


def outside_shares():
    """Shares of women against statistics: only bartenders are far from theirs."""
    women = {"author": (0.55, 0.56), "bartender": (0.24, 0.60), "roofer": (0.0, 0.015)}
    jobs = np.repeat([*women], 100)
    shown = np.concatenate([
        np.repeat(["man", "woman"], [round(100 - 100 * share), round(100 * share)])
        for share, _ in women.values()
    ])  # fmt: skip
    rows = [
        {"target": job, "group": group, "value": value}
        for job, (_, share) in women.items()
        for group, value in (("woman", share), ("man", 1 - share))
    ]
    return generated(jobs, shown, outside={"table": pl.DataFrame(rows)})


def generated(jobs, shown, **shares):
    """Return a config of generated images with labels of who they show."""
    ids = [f"i{k}" for k in range(len(jobs))]
    images = pl.DataFrame({"image_id": ids, "prompt": jobs, "gender": shown})
    labelled = {"table": images, "id": "image_id", "label": "gender", "said": "gender"}
    return {
        "audit": "text_to_image",
        "prompts": {"targets": [*dict.fromkeys(jobs)], "template": "{}"},
        "generators": {"painter": {"images": {"table": images, "prompt": "prompt"}}},
        "shares": [{
            "of": "gender", "classes": {"man": ["man"], "woman": ["woman"]},
            "said": {"painter": {"table": images, "said": "gender"}}, "labelled": labelled,
            **shares,
        }],
        "associations": None, **DRAWS,
    }  # fmt: skip


def associations(seed=22, builder=0.8, gender=1.0):
    """Words of one job of four lie closer to men; the others are as close to both."""
    rng, sets = np.random.default_rng(seed), ["men", "women", "builder", "chef", "nurse", "tailor"]
    lists = np.repeat(sets, 16)
    names = [f"{name} {k}" for k, name in enumerate(lists)]
    side = {"men": gender, "women": -gender, "builder": builder}
    vectors = 0.4 * rng.normal(size=(len(names), 12))
    vectors[:, 0] += [side.get(name, 0.0) for name in lists]
    vectors[:, 1] += 1.5
    words = pl.DataFrame({"id": names, "list": lists})
    return {
        "audit": "associations", "data": {"words": {"table": words, "id": "id", "kind": "text"}},
        "models": {"m": {"embeddings": {"words": vectors_of(names, vectors)}}},
        "sets": {name: {"words": {"list": name}} for name in sets},
        "measure": [{
            "metric": "association_score", "targets": sets[2:], "attributes": ["men", "women"],
        }],
        **DRAWS,
    }  # fmt: skip


def diversity(seed=23, spread=0.3):
    """Images of the north are more alike than those of the east and the west."""
    rng, per_set = np.random.default_rng(seed), 60
    region = np.repeat(["east", "north", "west"], per_set)
    vectors = rng.normal(size=(3 * per_set, 10)) * np.where(region == "north", spread, 0.9)[:, None]
    vectors[:, 0] += 2.0
    table = pl.DataFrame({"id": [f"i{k}" for k in range(len(region))], "region": region})
    return {
        "audit": "diversity",
        "data": {"images": {"table": table, "id": "id"}, "sets": ["region"]},
        "models": {"m": {"file": vectors.astype(np.float32)}}, **DRAWS,
    }  # fmt: skip


def generation(seed=24, women=0.3):
    """Images of women are unlike their caption in 30 of 100, those of men in 3 of 100."""
    rng, subjects, candidates = np.random.default_rng(seed), 10, 20
    rows, vectors, texts = [], [], {}
    for subject in range(subjects):
        for candidate in range(candidates):
            for gender in GENDER["gender"]:
                caption = f"A photo of a {gender} worker {subject}"
                texts[caption] = np.eye(subjects + 4)[subject]
                unlike = rng.random() < {"woman": women, "man": 0.03}[gender]
                meant = np.eye(subjects + 4)[subjects] if unlike else texts[caption]
                vectors.append(meant + 0.02 * rng.normal(size=subjects + 4))
                rows.append({
                    "image_id": f"{subject}-{candidate}-{gender}", "set": f"s{subject}",
                    "candidate": candidate, "gender": gender, "subject": f"worker {subject}",
                    "caption": caption, "state": "image",
                })  # fmt: skip
    images = pl.DataFrame(rows)
    return {
        "audit": "generation",
        "images": {"table": images, "candidate": "candidate", "state": "state",
                   "subject": "subject"},
        "attributes": ["gender"],
        "filters": {"similarity": {
            "images": vectors_of(images["image_id"], vectors),
            "captions": vectors_of(texts, [*texts.values()]), "threshold": 0.5, "pairs": None,
        }},
        **DRAWS,
    }  # fmt: skip


def concepts(seed=25, shift=1.6):
    """Scores of one concept of four separate worse in images of women."""
    rng, n = np.random.default_rng(seed), 1200
    gender, names = np.array(["man", "woman"] * (n // 2)), ("bicycle", "guitar", "laptop", "tie")
    labels = rng.random((n, 4)) < 0.3
    scores = rng.standard_normal((n, 4)) + 1.8 * labels
    scores[:, 3] -= shift * ((gender == "woman") & labels[:, 3])
    ids = [f"i{k}" for k in range(n)]
    flags = {name: labels[:, k].astype(int) for k, name in enumerate(names)}
    scored = {name: scores[:, k] for k, name in enumerate(names)}
    return {
        "audit": "concepts",
        "data": {
            "images": {"table": pl.DataFrame({"id": ids, "gender": gender}), "id": "id"},
            "groups": ["gender"], "labels": {"file": pl.DataFrame({"id": ids, **flags})},
        },
        "models": {"m": {"file": pl.DataFrame({"id": ids, **scored})}},
        "metrics": ["average_precision"], **DRAWS,
    }  # fmt: skip


def activations(seed=26, women=0.5):
    """Maps of women lie on the face less than those of men."""
    rng, n = np.random.default_rng(seed), 160
    left, top = rng.integers(0, 70, (2, n))
    gender = np.array(["man", "woman"] * (n // 2))
    cells = rng.random((n, 10, 10))
    for row in range(n):
        y, x = top[row] // 10, left[row] // 10
        cells[row, y : y + 3, x : x + 3] += women if gender[row] == "woman" else 4.0
    ids = [f"i{k}" for k in range(n)]
    table = pl.DataFrame({"id": ids, "gender": gender, "l": left, "t": top, "r": left + 30,
                          "b": top + 30})  # fmt: skip
    region = {"left": "l", "top": "t", "right": "r", "bottom": "b"}
    return {
        "audit": "activations",
        "data": {"images": {"table": table, "id": "id"}, "groups": ["gender"],
                 "regions": {"face": region}},
        "models": {"m": {"maps": {"file": cells.reshape(n, -1)},
                         "frames": {"file": np.tile([0.0, 0.0, 100.0, 100.0], (n, 1))}}},
        **DRAWS,
    }  # fmt: skip


def regression(seed=27, women=8.0):
    """Predicted ages miss those of women by more years than those of men."""
    rng, n = np.random.default_rng(seed), 800
    gender, age = np.array(["man", "woman"] * (n // 2)), rng.integers(18, 80, n)
    predicted = age + rng.normal(size=n) * np.where(gender == "woman", women, 4.0)
    table = pl.DataFrame({"id": [f"i{k}" for k in range(n)], "gender": gender, "age": age,
                          "predicted": predicted})  # fmt: skip
    return {
        "audit": "regression",
        "data": {"table": table, "id": "id", "target": "age", "groups": ["gender"]},
        "models": {"m": {"table": table, "prediction": "predicted"}}, **DRAWS,
    }  # fmt: skip


def questions(seed=58, gap=0.2, inconsistency=0.1, scenes=200):
    """Scenes with a man and a woman; the outcome is chosen more often for men by the gap."""
    rng, n = np.random.default_rng(seed), 2 * scenes
    gender = np.array(["man", "woman"] * scenes)
    share = np.repeat(rng.uniform(0.3, 0.7, scenes), 2) + np.where(gender == "man", gap, -gap) / 2
    outcome = rng.random(n) < share
    by_position = rng.random(n) < inconsistency
    items = pl.DataFrame({
        "id": [f"i{k}" for k in range(n)], "gender": gender,
        "scene": np.repeat(np.arange(scenes), 2).astype(str),
    })  # fmt: skip
    chosen = {"AB": np.where(by_position | outcome, "pilot", "nurse"),
              "BA": np.where(~by_position & outcome, "pilot", "nurse")}  # fmt: skip
    responses = pl.concat(
        pl.DataFrame({"id": items["id"], "order": order, "answer": answers})
        for order, answers in chosen.items()
    )
    return {
        "audit": "questions",
        "data": {"table": items, "id": "id", "question": "Who is this?", "groups": ["gender"],
                 "options": ["pilot", "nurse"], "outcome": "pilot", "unit": "scene"},
        "models": {"m": {"table": responses, "answer": "answer", "order": "order"}}, **DRAWS,
    }  # fmt: skip


def dataset(women=100):
    """A tenth of the images show women where the population has half; ages are as there."""
    gender = balanced(man=1000 - women, woman=women)
    table = pl.DataFrame({
        "id": [f"i{k}" for k in range(1000)], "gender": gender,
        "age": np.tile(["old", "young"], 500),
    })  # fmt: skip
    shares = {"gender": {"man": 1, "woman": 1}, "age": {"old": 1, "young": 1}}
    return {
        "audit": "dataset",
        "data": {"images": {"table": table, "id": "id"}, "groups": ["gender", "age"]},
        "reference": {"shares": shares}, **DRAWS,
    }  # fmt: skip


def shares_of_three(**sizes):
    """Three groups that are as frequent in the population."""
    race = balanced(**sizes)
    table = pl.DataFrame({"id": [f"i{k}" for k in range(len(race))], "race": race})
    return {
        "audit": "dataset",
        "data": {"images": {"table": table, "id": "id"}, "groups": ["race"]},
        "reference": {"shares": {"race": dict.fromkeys(sizes, 1)}}, **DRAWS,
    }  # fmt: skip
