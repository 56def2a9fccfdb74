"""Write the example's data: embeddings of images found for two queries in four regions.

    python examples/diversity/make.py

Planted: "wedding" images of the United States are more alike than elsewhere (spread 0.55 against
0.9), those of Nigeria lie apart from the others; "street" images differ in nothing. Nine images of
Peru are too few to be measured.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
DIMENSION = 24
REGIONS = {"India": 60, "Nigeria": 60, "United States": 60, "Vietnam": 60, "Peru": 9}
SPREAD = {("wedding", "United States"): 0.55}
SHIFT = {("wedding", "Nigeria"): 2.0}


def main() -> None:
    """Write images.csv, embeddings.npy and the reference's table and embeddings."""
    rng = np.random.default_rng(20)
    rows, vectors = ["image_id,query,region"], []
    for query, centre in (("street", 0), ("wedding", 1)):
        for region, count in REGIONS.items():
            place = np.zeros(DIMENSION)
            place[centre] = 3.0
            place[5] = SHIFT.get((query, region), 0.0)
            spread = SPREAD.get((query, region), 0.9)
            vectors.append(place + spread * rng.standard_normal((count, DIMENSION)))
            code = region.lower().replace(" ", "-")
            rows += [f"{query}-{code}-{i:02d},{query},{region}" for i in range(count)]
    (HERE / "images.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    np.save(HERE / "embeddings.npy", np.concatenate(vectors).astype(np.float32))
    stock = np.zeros(DIMENSION)
    stock[:2] = 1.5
    reference = stock + 1.1 * rng.standard_normal((120, DIMENSION))
    np.save(HERE / "stock.npy", reference.astype(np.float32))
    names = "\n".join(f"stock-{i:03d}" for i in range(len(reference)))
    (HERE / "stock.csv").write_text(f"image_id\n{names}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
