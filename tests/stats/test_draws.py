"""Draws: tables, units, subsets and streams, against whole distributions and published numbers."""

from collections import Counter
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom, poisson

from equipoise.stats import draws
from equipoise.stats.draws import ItemSampler, TableSampler
from equipoise.stats.exchange import Exchange, RowExchange
from equipoise.stats.streams import (
    add_exchanged,
    draw_subsets,
    keys,
    philox_numbers,
    shuffle,
    stream,
    unit_counts,
    unit_keys,
    unit_times,
    unit_uniforms,
)

TABLE = np.array([[9, 4, 0, 2], [3, 8, 6, 1], [0, 0, 5, 5], [7, 1, 1, 1], [0, 0, 0, 3]], float)


def whole(blocks):
    return np.concatenate([*blocks])


def items(table, *, unit_size=1):
    """The rows of a table as items, `unit_size` rows of a cell per unit."""
    cells = table.astype(int)
    outcome = np.repeat(np.arange(len(cells)), cells.sum(axis=1))
    group = np.concatenate([np.repeat(np.arange(cells.shape[1]), row) for row in cells])
    unit = np.arange(len(outcome)) // unit_size
    return ItemSampler(
        outcome,
        np.arange(len(outcome)),
        np.ones(len(outcome)),
        group,
        unit,
        unit_keys([str(index) for index in range(unit.max() + 1)]),
        cells.shape,
    )


# Ways to permute independent rows, with the cost of a row that makes each the cheapest.
WAYS = {"outcomes": 1e9, "rows": 0.0, "both": 20.0, "items": 0.0}


def choose(way, monkeypatch):
    """Let tables be permuted one way, whatever their shape."""
    monkeypatch.setattr(draws, "_COUNT", WAYS[way])
    monkeypatch.setattr(draws, "_SHUFFLE", 0.0)


SMALL = np.array([[3.0, 1.0], [1.0, 2.0], [0.0, 3.0]])


def frequencies(tables):
    return Counter(map(tuple, tables.reshape(len(tables), -1).astype(int).tolist()))


def assert_distribution(drawn_tables, tables, weights):
    """Chi-square of the drawn tables against their probabilities; rare ones pooled."""
    frequency = frequencies(drawn_tables)
    names = list(map(tuple, tables.reshape(len(tables), -1).astype(int).tolist()))
    assert frequency.keys() <= set(names)
    counts = np.array([frequency[name] for name in names])
    expected = weights * len(drawn_tables)
    common = expected >= 5
    pooled = [np.append(x[common], x[~common].sum()) for x in (counts, expected)]
    possible = pooled[1] > 0
    assert chisquare(pooled[0][possible], pooled[1][possible]).pvalue > 0.001


def rearranged(table, strata):
    """Every table that exchanging two groups within strata can give, with its probability."""
    outcome = np.repeat(np.arange(len(table)), table.sum(axis=1).astype(int))
    frequency = Counter()
    for chosen in combinations(range(len(outcome)), int(table[:, 0].sum())):
        first = np.bincount(outcome[[*chosen]], minlength=len(table))
        if (np.bincount(strata, first) == np.bincount(strata, table[:, 0])).all():
            frequency[tuple(first.tolist())] += 1
    first, weights = np.array([*frequency]), np.array([*frequency.values()])
    return np.stack([first, table.sum(axis=1) - first], axis=2), weights / weights.sum()


# From a variance of 20 on counts are rounded normal numbers; of unlike columns some are.
@pytest.mark.parametrize(
    ("good", "bad", "n_drawn"),
    [
        ([25], [4000], [3000]),
        ([250], [100_000], [11_000]),
        ([1100], [150], [800]),
        ([2000, 12], [22_000, 30], [3000, 9]),
    ],
)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_counts_follow_the_hypergeometric_distribution(good, bad, n_drawn, kind):
    shape = (400_000, 1)
    arguments = [np.tile(np.array(column, kind), shape) for column in (good, bad, n_drawn)]
    counts = draws.hypergeometric(*arguments, np.random.default_rng(0))
    exact = hypergeom(np.add(good, bad), good, n_drawn)
    for tail in (0.2, 0.01, 0.001):
        low, high = exact.ppf(tail), exact.isf(tail)
        pairs = (exact.cdf(low), counts <= low), (exact.sf(high - 1), counts >= high)
        for share, beyond in pairs:
            error = np.sqrt(share * (1 - share) / len(counts))
            np.testing.assert_array_less(np.abs(beyond.mean(axis=0) - share), 4 * error)


@pytest.mark.parametrize("strata", [np.zeros(3, int), np.array([0, 1, 0])])
@pytest.mark.parametrize("way", WAYS)
def test_permutations_have_the_exact_distribution(way, strata, monkeypatch):
    choose(way, monkeypatch)
    sampler = items(SMALL) if way == "items" else TableSampler(SMALL)
    tables = whole(sampler.permute(strata, 20_000, 3))
    assert_distribution(tables, *rearranged(SMALL, strata))


# Cells are drawn as such, or where a row costs less than 12 of those, row by row.
@pytest.mark.parametrize("row", [1e9, 12.0, 0.0])
def test_bootstrap_of_independent_rows_is_multinomial(row, monkeypatch):
    monkeypatch.setattr(draws, "_ROW", row)
    monkeypatch.setattr(draws, "_CALLS", 0.0)
    tables = whole(TableSampler(TABLE).bootstrap(8000, 1))
    n, p = TABLE.sum(), TABLE / TABLE.sum()
    assert (tables.sum(axis=(1, 2)) == n).all()
    assert (tables[:, TABLE == 0] == 0).all()
    assert (np.abs(tables.mean(axis=0) - TABLE) <= 4 * np.sqrt(n * p * (1 - p) / 8000)).all()
    assert tables.var(axis=0) == pytest.approx(n * p * (1 - p), rel=0.12)
    assert np.cov(tables[:, 0, 0], tables[:, 1, 1])[0, 1] == pytest.approx(
        -n * p[0, 0] * p[1, 1], abs=0.25
    )


@pytest.mark.parametrize("total", [3e4, 1e8])
def test_tables_of_many_rows_are_the_same_in_any_number_of_threads(total, monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.multinomial(int(total), rng.dirichlet(np.ones(600))).reshape(60, 10)
    table = table.astype(np.float64)
    strata = np.arange(60) // 4
    all_draws = []
    for threads in ("1", "3"):
        monkeypatch.setenv("EQUIPOISE_THREADS", threads)
        sampler = TableSampler(table)
        for blocks in (sampler.permute(strata, 2000, 5), sampler.bootstrap(2000, 5)):
            all_draws.append(whole(blocks.each(lambda _, tables: np.copy(tables))))
            assert len(blocks.sizes) > 1
            assert (all_draws[-1] == whole(blocks)).all()
    permuted, resampled, *repeats = all_draws
    assert all(
        (first_draw == second_draw).all()
        for first_draw, second_draw in zip(all_draws[:2], repeats, strict=True)
    )
    assert (permuted >= 0).all()
    assert (permuted.sum(axis=2) == table.sum(axis=1)).all()
    by_stratum = permuted.reshape(2000, 15, 4, 10).sum(axis=2)
    assert (by_stratum == table.reshape(15, 4, 10).sum(axis=1)).all()
    assert (resampled.sum(axis=(1, 2)) == table.sum()).all()


def test_split_weights_belong_to_the_stratum_of_the_largest():
    # Rows 0 and 1 are mostly of stratum 1, rows 2 and 3 of stratum 0, of equal weights the first.
    sampler = ItemSampler(
        np.tile([0, 1], 4), np.repeat(np.arange(4), 2),
        np.array([0.4, 0.6, 0.3, 0.7, 0.9, 0.1, 0.5, 0.5]), np.array([0, 1, 0, 1]),
        np.arange(4), unit_keys([*"abcd"]), (2, 2),
    )  # fmt: skip
    tables = whole(sampler.permute(np.array([0, 1]), 200, 1))
    assert len(np.unique(tables, axis=0)) == 4
    mostly_one = tables[:, 1].sum(axis=1)
    assert mostly_one == pytest.approx(np.full(200, 1.9))


# Exchange: which rows may exchange groups.


@pytest.mark.parametrize("exchange_of", [Exchange.of, Exchange.within])
def test_units_alike_in_their_strata_exchange_among_themselves(exchange_of):
    # 20 units span both strata, 20 have rows in stratum 0 only: the two kinds do not mix.
    unit = np.concatenate([np.repeat(np.arange(20), 2), np.arange(20, 40)])
    stratum = np.concatenate([np.tile([0, 1], 20), np.zeros(20, int)])
    group = np.concatenate([np.repeat(np.arange(20) % 2, 2), 2 + np.arange(20) % 2])
    exchange = exchange_of(group, unit, stratum)
    exchanged = exchange.shuffle(group, np.random.default_rng(1))
    assert set(exchanged[:40].tolist()) == {0, 1}
    assert set(exchanged[40:].tolist()) == {2, 3}
    assert (exchanged[:40:2] == exchanged[1:40:2]).all()
    assert (exchanged != group).any()


def reached(exchange, group):
    """The groups of rows after 300 exchanges."""
    rng = np.random.default_rng(0)
    return {tuple(exchange.shuffle(group, rng).tolist()) for _ in range(300)}


@pytest.mark.parametrize(
    ("group", "unit", "stratum", "expected"),
    [
        # Units of one group move as a whole, those of several exchange within.
        ([0, 0, 1, 1, 1], [0, 0, 1, 1, 1], [0] * 5, {(0, 0, 1, 1, 1), (1, 1, 0, 0, 0)}),
        ([0, 0, 1, 0, 1], [0, 0, 1, 2, 2], [0] * 5,
         {(0, 0, 1, 0, 1), (0, 0, 1, 1, 0), (1, 1, 0, 0, 1), (1, 1, 0, 1, 0)}),
        # Within a unit, what is of one group stays together.
        ([0, 1, 1, 0], [0] * 4, [0] * 4, {(0, 1, 1, 0), (1, 0, 0, 1)}),
        # Strata do not mix.
        ([0, 1, 2, 3], [0, 1, 2, 3], [0, 0, 1, 1],
         {(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)}),
        # Unit 0 spans strata and exchanges with those of its largest part; unit 2 is alone.
        ([0, 0, 0, 1, 2], [0, 0, 0, 1, 2], [0, 0, 1, 0, 1], {(0, 0, 0, 1, 2), (1, 1, 1, 0, 2)}),
        # Another group in each stratum: part by part.
        ([0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 1],
         {(0, 1, 1, 0), (1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1)}),
    ],
)  # fmt: skip
def test_units_exchange_groups_within_those_of_several(group, unit, stratum, expected):
    groups = np.array(group)
    exchange = Exchange.within(groups, np.array(unit), np.array(stratum))
    assert reached(exchange, groups) == expected


def test_independent_rows_exchange_within_their_block():
    groups = np.array([0, 1, 1])
    exchange = Exchange.within(groups, np.zeros(3, int), np.zeros(3, int), by_row=True)
    assert reached(exchange, groups) == {(0, 1, 1), (1, 0, 1), (1, 1, 0)}


def test_cells_of_all_units_exchange_groups():
    # Unit 0 has rows of both groups: two cells, and units 1 and 2 one each.
    groups = np.array([0, 0, 1, 0, 1, 1])
    exchange = Exchange.of(groups, np.array([0, 0, 0, 1, 2, 2]), np.zeros(6, int))
    cells = [[0, 1], [2], [3], [4, 5]]
    expected = set()
    for chosen in combinations(range(4), 2):
        exchanged = np.ones(6, int)
        exchanged[[row for cell in chosen for row in cells[cell]]] = 0
        expected.add(tuple(exchanged.tolist()))
    assert reached(exchange, groups) == expected


@pytest.mark.parametrize(
    ("group", "unit", "stratum", "expected"),
    [
        # Units of several groups and of other sizes shuffle within.
        ([0, 1, 0, 1, 1], [0, 0, 1, 1, 1], [0] * 5,
         {(*first, *second) for first in permutations([0, 1])
          for second in permutations([0, 1, 1])}),
        # Those with as many rows exchange all of their groups, too.
        ([0, 1, 0, 2], [0, 0, 1, 1], [0] * 4,
         {(*first, *second) for sides in permutations([(0, 1), (0, 2)])
          for first in permutations(sides[0]) for second in permutations(sides[1])}),
        # Units of one group do so as wholes.
        ([0, 0, 1, 0, 1], [0, 0, 1, 2, 2], [0] * 5,
         {(0, 0, 1, 0, 1), (0, 0, 1, 1, 0), (1, 1, 0, 0, 1), (1, 1, 0, 1, 0)}),
        # Strata do not mix: with as many rows in each, units exchange across them.
        ([0, 1, 2, 0, 1, 1], [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1],
         {(0, 1, 2, 0, 1, 1), (1, 0, 2, 0, 1, 1)}),
        ([0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1], {(0, 1, 2, 3), (2, 3, 0, 1)}),
    ],
)  # fmt: skip
def test_rows_of_units_of_several_groups_exchange_groups(group, unit, stratum, expected):
    groups = np.array(group)
    exchange = RowExchange.of(groups, np.array(unit), np.array(stratum))
    assert reached(exchange, groups) == expected


def test_exchanges_of_rows_are_equally_likely():
    groups, rng = np.array([0, 1, 0, 2, 1]), np.random.default_rng(3)
    exchange = RowExchange.of(groups, np.array([0, 0, 1, 1, 2]), np.zeros(5, int))
    frequency = Counter(tuple(exchange.shuffle(groups, rng).tolist()) for _ in range(8000))
    assert len(frequency) == 8
    assert chisquare([*frequency.values()]).pvalue > 0.001


# Tables of units: what is drawn where rows repeat.


def clustered(rng, *, units=14, groups=3, outcomes=4):
    """Rows of units with several groups: group, unit, outcome and the sampler of them."""
    n = units * 6
    unit = np.repeat(np.arange(units), 6)
    group = (unit + np.repeat(rng.integers(0, 2, units * 2), 3)) % groups
    outcome = np.repeat(rng.integers(0, outcomes, n // 2), 2)
    order = np.lexsort((outcome, group, unit))
    return unit[order], group[order], outcome[order]


def sampler_of(unit, group, outcome, shape):
    keys = unit_keys([str(index) for index in range(unit.max() + 1)])
    rows = np.arange(len(unit))
    return ItemSampler(outcome, rows, np.ones(len(unit)), group, unit, keys, shape)


def standard_errors(unit, group, outcome, strata, shape):
    """Squared standard errors of deviations over units, in plain loops."""
    n_strata = strata.max() + 1
    variance = np.zeros((n_strata, shape[1]))
    for stratum, target in product(range(n_strata), range(shape[1])):
        here = strata[outcome] == stratum
        shares = np.bincount(outcome[here], minlength=shape[0]) / max(here.sum(), 1)
        share_of_group = (here & (group == target)).sum() / max(here.sum(), 1)
        for name in range(unit.max() + 1):
            parts = []
            for rows in (here & (unit == name) & (group == target), here & (unit == name)):
                counted = np.bincount(outcome[rows], minlength=shape[0])
                parts.append((counted - rows.sum() * shares)[strata == stratum])
            variance[stratum, target] += ((parts[0] - share_of_group * parts[1]) ** 2).sum()
    return variance


@pytest.mark.parametrize("strata", [[0, 0, 0, 0], [0, 0, 1, 1]])
def test_exchanged_cells_are_in_the_observed_standard_errors(strata):
    strata, shape = np.array(strata), (4, 3)
    unit, group, outcome = clustered(np.random.default_rng(4))
    sampler = sampler_of(unit, group, outcome, shape)
    tables = whole(sampler.permute(strata, 20, 3))
    sizes = np.array([sampler.table[strata == stratum].sum(axis=0) for stratum in strata])
    exchange = Exchange.of(group, unit, strata[outcome])
    totals = np.bincount(outcome, minlength=4)
    in_stratum = np.array([totals[strata == stratum].sum() for stratum in strata])
    shares = (totals / in_stratum)[:, None]
    observed = standard_errors(unit, group, outcome, strata, shape)
    for replicate, table in enumerate(tables):
        exchanged = exchange.shuffle(group, stream(3, "permutation", replicate))
        counted = np.zeros(shape)
        np.add.at(counted, (outcome, exchanged), 1.0)
        exchanged_sizes = np.array([counted[strata == stratum].sum(axis=0) for stratum in strata])
        variance = standard_errors(unit, exchanged, outcome, strata, shape)
        factor = np.sqrt(np.divide(observed, variance, out=np.ones_like(observed),
                                   where=variance > 1e-9))  # fmt: skip
        expected = sizes * shares + factor[strata] * (counted - shares * exchanged_sizes)
        expected = np.maximum(expected, 0.0)
        sums = np.array([expected[strata == stratum].sum(axis=0) for stratum in strata])
        assert table == pytest.approx(expected * sizes / sums)


def test_groups_of_units_keep_their_sizes():
    unit, group, outcome = clustered(np.random.default_rng(5))
    sampler = sampler_of(unit, group, outcome, (4, 3))
    tables = whole(sampler.permute(np.array([0, 0, 1, 1]), 50, 3))
    assert (tables >= 0.0).all()
    for stratum in ([0, 1], [2, 3]):
        sizes = sampler.table[stratum].sum(axis=0)
        assert tables[:, stratum].sum(axis=1) == pytest.approx(np.tile(sizes, (50, 1)))
    assert len(np.unique(tables.round(9), axis=0)) > 40


UNITS = unit_keys([f"unit {index}" for index in range(5000)])


@pytest.mark.parametrize("replicates", [range(12), range(4, 9)])
def test_units_count_as_often_as_poisson_quantiles_of_their_uniform_numbers(replicates):
    times = unit_times(UNITS, len(replicates), 7, first=replicates.start)
    assert (times[:, 0] == 1).all()
    expected = poisson.ppf(unit_uniforms(7, "bootstrap", UNITS, replicates), 1)
    assert (expected == times[:, 1:].T).all()
    assert (unit_counts(7, UNITS, replicates) == expected).all()


KEYS = unit_keys([f"unit {index}" for index in range(500)])

# Known answers of philox4x32-10 from Random123 1.14, tests/kat_vectors: counter, key, output.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip

STREAM = [3344948120, 3141028135, 2711724048]
UNIFORMS = [0.23654836639048604, 0.9205164422290398, 0.5464870439674526, 0.3195558858266634]


def words(text):
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN)
def test_philox_gives_the_published_answers(counter, key, output):
    low, high, first, more = words(counter)
    words_out = np.empty((1, 2), dtype=np.uint64)
    unit = np.array([high << 32 | low], dtype=np.uint64)
    index = np.uint64(more << 32 | first).astype(np.int64)
    philox_numbers(unit, np.array(words(key), dtype=np.uint64), index, words_out)
    first_word, second_word, *_ = words(output)
    assert int(words_out[0, 0]) == (first_word >> 5) << 26 | second_word >> 6


def test_a_seed_means_the_same_numbers_in_every_version():
    assert stream(7, "bootstrap", 0).integers(1 << 32, size=3).tolist() == STREAM
    uniforms = unit_uniforms(7, "bootstrap", unit_keys(["a", "b"]), range(2))
    assert uniforms.ravel().tolist() == UNIFORMS


def test_the_number_of_a_unit_depends_on_nothing_else():
    all_uniforms = unit_uniforms(1, "x", KEYS, range(40))
    part = unit_uniforms(1, "x", KEYS[[7, 3]], range(20, 25))
    assert part.tolist() == all_uniforms[20:25][:, [7, 3]].tolist()
    assert (
        unit_uniforms(1, "x", KEYS, range(2**33, 2**33 + 1)).tolist() != all_uniforms[:1].tolist()
    )


def orders(seed, lines, n):
    labels = np.tile(np.arange(n, dtype=np.uint32), (lines, 1))
    shuffle(keys(seed, "test", n_streams=lines), labels)
    return labels


def members(words, n):
    """Return which members are in each subset, shape (draws, n)."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, n:].any()
    return bits[:, :n]


def subsets(key, n, size, draws):
    words = np.empty((draws, -(-n // 64)), dtype=np.uint64)
    draw_subsets(np.uint64(key), n, size, words)
    return members(words, n)


def test_all_orders_are_alike():
    observed, counts = np.unique(orders(1, 48_000, 4), axis=0, return_counts=True)
    assert sorted(map(tuple, observed.tolist())) == sorted(permutations(range(4)))
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("n", "size"), [(6, 3), (7, 2), (9, 1), (9, 8)])
def test_all_subsets_are_alike(n, size):
    observed, counts = np.unique(subsets(3, n, size, 60_000), axis=0, return_counts=True)
    expected = {
        tuple(int(i in subset) for i in range(n)) for subset in combinations(range(n), size)
    }
    assert {*map(tuple, observed.tolist())} == expected
    assert chisquare(counts).pvalue > 1e-3


def test_words_are_those_of_splitmix64():
    # Half of 64 members is one word of the generator, mended by one bit at a time; the published
    # first outputs from 1234567 are 6457827717110365317, 3203168211198807973, ...
    words = np.empty((1, 1), dtype=np.uint64)
    first = 6457827717110365317
    draw_subsets(np.uint64(1234567), 64, 32, words)
    n_bits = (int(words[0, 0]) ^ first).bit_count()
    assert n_bits == abs(first.bit_count() - 32)


def exchanged(sizes, n_members, values, lines):
    starts = np.concatenate([[0], np.cumsum(sizes)])
    sums = np.empty((lines, values.shape[1]), dtype=np.int64)
    order = np.random.default_rng(5).permutation(len(values)).astype(np.int64)
    place = np.argsort(np.repeat(np.arange(len(sizes)), sizes)[order], kind="stable")
    add_exchanged(
        keys(3, "e", n_streams=lines), order[place], starts, np.array(n_members), values, sums
    )
    return sums


def test_exchanged_members_are_any_of_their_pool_alike():
    """Pools that give none, some, most and all of their members."""
    sizes, n_members = [3, 4, 4, 2], [0, 1, 3, 2]
    bits = (1 << np.arange(13))[:, None]
    sums = exchanged(sizes, n_members, np.column_stack([np.ones_like(bits), bits]), 12_000)
    assert {*sums[:, 0]} == {6}
    subsets = [
        sum(
            1 << member
            for member in (
                3 + first_member,
                *(7 + m for m in range(4) if m != second_member),
                11,
                12,
            )
        )
        for first_member in range(4)
        for second_member in range(4)
    ]
    counts = [int((sums[:, 1] == subset).sum()) for subset in subsets]
    assert sum(counts) == 12_000
    assert chisquare(counts).pvalue > 0.01
