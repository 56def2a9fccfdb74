"""Draws of count tables: margins, expectations, whole distributions, and what they depend on."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats

from equipoise.stats import draws, margins
from equipoise.stats.draws import ItemSampler, Sampler, TableSampler, block_sizes
from equipoise.stats.exact import exact_tables
from equipoise.stats.exchange import Exchange
from equipoise.stats.margins import FixedMargins
from equipoise.stats.streams import unit_keys

Array = np.ndarray

TABLE = np.array([[9, 4, 0, 2], [3, 8, 6, 1], [0, 0, 5, 5], [7, 1, 1, 1], [0, 0, 0, 3]], float)
ONE = np.zeros(5, int)
TWO = np.array([0, 1, 0, 1, 1])


def whole(blocks: Iterable[Array]) -> Array:
    return np.concatenate([*blocks])


def items(table: Array, *, unit_size: int = 1) -> ItemSampler:
    """The rows of a table as items, of which as many as `unit_size` in a cell are one unit."""
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
WAYS = {"outcomes": 1e9, "groups": 1e9, "rows": 0.0, "both": 20.0, "items": 0.0}


def choose(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tables be permuted one way, whatever their shape."""
    monkeypatch.setattr(margins, "_COUNT", WAYS[way])
    monkeypatch.setattr(margins, "_SHUFFLE", 0.0)
    if way == "groups":
        monkeypatch.setattr(margins, "_by_outcome", margins._by_group)


@pytest.fixture(params=WAYS)
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sampler:
    """Every way to permute independent rows."""
    choose(request.param, monkeypatch)
    return items(TABLE) if request.param == "items" else TableSampler(TABLE)


@pytest.mark.parametrize("strata", [ONE, TWO])
def test_permutations_keep_the_margins_of_each_stratum(sampler: Sampler, strata: Array) -> None:
    found = whole(sampler.permute(strata, 300, 1))
    assert found.shape == (300, *TABLE.shape)
    assert (found >= 0).all()
    assert (found.sum(axis=2) == TABLE.sum(axis=1)).all()
    for name in (0, 1):
        assert (found[:, strata == name].sum(axis=1) == TABLE[strata == name].sum(axis=0)).all()


@pytest.mark.parametrize("strata", [ONE, TWO])
def test_permutations_have_hypergeometric_moments(sampler: Sampler, strata: Array) -> None:
    found = whole(sampler.permute(strata, 8000, 2))
    for name in set(strata.tolist()):
        part = TABLE[strata == name]
        n, rows, columns = part.sum(), part.sum(axis=1)[:, None], part.sum(axis=0)
        mean = rows * columns / n
        variance = mean * (n - rows) * (n - columns) / (n * (n - 1))
        drawn = found[:, strata == name]
        assert (np.abs(drawn.mean(axis=0) - mean) <= 4 * np.sqrt(variance / 8000) + 1e-9).all()
        assert drawn.var(axis=0) == pytest.approx(variance, rel=0.12)


SMALL = np.array([[3.0, 1.0], [1.0, 2.0], [0.0, 3.0]])


def frequencies(tables: Array) -> Counter[tuple[int, ...]]:
    return Counter(map(tuple, tables.reshape(len(tables), -1).astype(int).tolist()))


def assert_distribution(found: Array, tables: Array, weights: Array) -> None:
    """Chi-square of the drawn tables against their probabilities; rare ones pooled."""
    seen = frequencies(found)
    names = list(map(tuple, tables.reshape(len(tables), -1).astype(int).tolist()))
    assert seen.keys() <= set(names)
    counts = np.array([seen[name] for name in names])
    expected = weights * len(found)
    common = expected >= 5
    both = [np.append(x[common], x[~common].sum()) for x in (counts, expected)]
    kept = both[1] > 0
    assert stats.chisquare(both[0][kept], both[1][kept]).pvalue > 0.001


@pytest.mark.parametrize("strata", [np.zeros(3, int), np.array([0, 1, 0])])
@pytest.mark.parametrize("way", WAYS)
def test_permutations_have_the_exact_distribution(
    way: str, strata: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(way, monkeypatch)
    sampler = items(SMALL) if way == "items" else TableSampler(SMALL)
    found = whole(sampler.permute(strata, 20_000, 3))
    assert_distribution(found, *exact_tables(SMALL, strata, limit=1000))


def test_permutations_have_the_distribution_of_scipys_random_tables() -> None:
    found = whole(TableSampler(SMALL).permute(np.zeros(3, int), 20_000, 4))
    tables = np.unique(found, axis=0)
    random = stats.random_table(SMALL.sum(axis=1), SMALL.sum(axis=0))
    weights = random.pmf(tables)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert_distribution(found, tables, weights)


def test_permutations_have_the_distribution_of_shuffled_rows() -> None:
    rng = np.random.default_rng(5)
    outcome = np.repeat(np.arange(3), SMALL.sum(axis=1).astype(int))
    group = np.repeat([0, 1, 0, 1, 1], [3, 1, 1, 2, 3])
    shuffled = np.zeros((20_000, 3, 2))
    for table in shuffled:
        np.add.at(table, (outcome, rng.permutation(group)), 1)
    found = frequencies(whole(TableSampler(SMALL).permute(np.zeros(3, int), 20_000, 6)))
    brute = frequencies(shuffled)
    names = [name for name in brute if brute[name] + found[name] >= 10]
    table = [[counts[name] for name in names] for counts in (found, brute)]
    assert stats.chi2_contingency(table).pvalue > 0.001


# Cells are drawn as such, or where a row costs less than 12 of those, row by row.
@pytest.mark.parametrize("row", [1e9, 12.0, 0.0])
def test_bootstrap_of_independent_rows_is_multinomial(
    row: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "_ROW", row)
    monkeypatch.setattr(draws, "_CALLS", 0.0)
    found = whole(TableSampler(TABLE).bootstrap(8000, 1))
    n, p = TABLE.sum(), TABLE / TABLE.sum()
    assert (found.sum(axis=(1, 2)) == n).all()
    assert (found[:, TABLE == 0] == 0).all()
    assert (np.abs(found.mean(axis=0) - TABLE) <= 4 * np.sqrt(n * p * (1 - p) / 8000)).all()
    assert found.var(axis=0) == pytest.approx(n * p * (1 - p), rel=0.12)
    assert np.cov(found[:, 0, 0], found[:, 1, 1])[0, 1] == pytest.approx(
        -n * p[0, 0] * p[1, 1], abs=0.25
    )


@pytest.mark.parametrize("unit_size", [1, 3])
def test_bootstrap_of_units_has_poisson_moments(unit_size: int) -> None:
    sampler = items(TABLE, unit_size=unit_size)
    found = whole(sampler.bootstrap(6000, 1))
    unit_tables = np.zeros((len(sampler.keys), *TABLE.shape))
    np.add.at(unit_tables, (sampler.unit, sampler.outcome, sampler.group), 1.0)
    variance = (unit_tables**2).sum(axis=0)
    assert (np.abs(found.mean(axis=0) - TABLE) <= 4 * np.sqrt(variance / 6000) + 1e-9).all()
    assert found.var(axis=0) == pytest.approx(variance, rel=0.12)


def test_a_unit_counts_a_poisson_number_of_times_in_all_its_rows() -> None:
    outcome, group = np.array([0, 1, 2, 2]), np.array([0, 0, 0, 1])
    unit, keys = np.array([0, 0, 0, 1]), unit_keys(["a", "b"])
    sampler = ItemSampler(outcome, np.arange(4), np.ones(4), group, unit, keys, (3, 2))
    found = whole(sampler.bootstrap(4000, 9))
    assert (found[:, 0, 0] == found[:, 1, 0]).all()
    assert (found[:, 0, 0] == found[:, 2, 0]).all()
    times = np.bincount(found[:, 2, 1].astype(int), minlength=5)
    expected = stats.poisson.pmf(np.arange(4), 1.0)
    assert (
        stats.chisquare(
            [*times[:4], times[4:].sum()], 4000 * np.append(expected, 1 - expected.sum())
        ).pvalue
        > 0.001
    )


def test_the_times_a_unit_counts_do_not_depend_on_other_units() -> None:
    outcome, group = np.array([0, 1, 1]), np.array([0, 0, 1])
    both = ItemSampler(
        outcome, np.arange(3), np.ones(3), group, np.array([0, 1, 2]),
        unit_keys(["a", "b", "c"]), (2, 2),
    )  # fmt: skip
    alone = ItemSampler(
        outcome[1:], np.arange(2), np.ones(2), group[1:], np.array([0, 1]),
        unit_keys(["b", "c"]), (2, 2),
    )  # fmt: skip
    found, expected = (whole(one.bootstrap(50, 3)) for one in (both, alone))
    assert (found[:, 1] == expected[:, 1]).all()


def test_split_weights_move_together() -> None:
    sampler = ItemSampler(
        np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1]), np.array([0.7, 0.3, 0.5, 0.5]),
        np.array([0, 1]), np.array([0, 1]), unit_keys(["a", "b"]), (3, 2),
    )  # fmt: skip
    assert sampler.table.tolist() == [[0.7, 0.5], [0.3, 0.0], [0.0, 0.5]]
    permuted = {table.tobytes() for table in whole(sampler.permute(np.zeros(3, int), 40, 1))}
    assert permuted == {sampler.table.tobytes(), sampler.table[:, ::-1].tobytes()}


def test_split_weights_belong_to_the_stratum_of_the_largest() -> None:
    # Rows 0 and 1 are mostly of stratum 1, rows 2 and 3 of stratum 0, of equal weights the first.
    sampler = ItemSampler(
        np.tile([0, 1], 4), np.repeat(np.arange(4), 2),
        np.array([0.4, 0.6, 0.3, 0.7, 0.9, 0.1, 0.5, 0.5]), np.array([0, 1, 0, 1]),
        np.arange(4), unit_keys([*"abcd"]), (2, 2),
    )  # fmt: skip
    found = whole(sampler.permute(np.array([0, 1]), 200, 1))
    assert len(np.unique(found, axis=0)) == 4
    mostly_one = found[:, 1].sum(axis=1)
    assert mostly_one == pytest.approx(np.full(200, 1.9))


@pytest.mark.parametrize("draw", ["bootstrap", "permute"])
@pytest.mark.parametrize("way", [*WAYS][:-1])
def test_renamed_groups_give_the_same_draws(
    draw: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(way, monkeypatch)
    monkeypatch.setattr(draws, "_CALLS", 0.0)
    order = [2, 0, 3, 1]
    arguments = (400, 5) if draw == "bootstrap" else (TWO, 400, 5)
    found, renamed = (
        whole(getattr(TableSampler(table), draw)(*arguments)) for table in (TABLE, TABLE[:, order])
    )
    assert (renamed == found[:, :, order]).all()


def test_seeds_give_other_draws() -> None:
    for sampler in (TableSampler(TABLE), items(TABLE)):
        for draw in (sampler.bootstrap, lambda n, seed, s=sampler: s.permute(ONE, n, seed)):
            first, again, other = (whole(draw(20, seed)) for seed in (1, 1, 2))
            assert (first == again).all()
            assert (first != other).any()


def test_blocks_cover_the_replicates_and_bound_the_memory() -> None:
    for replicates, cells in ((1, 1), (1000, 10), (1000, 50_000), (7, 10**9)):
        blocks = [*block_sizes(replicates, cells)]
        assert [start for start, _ in blocks] == np.cumsum([0, *(n for _, n in blocks)])[
            :-1
        ].tolist()
        assert sum(size for _, size in blocks) == replicates
        assert all(size == 1 or size * cells <= 1_000_000 for _, size in blocks)
    assert [*block_sizes(0, 10)] == []


def test_blocks_of_units_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = items(TABLE, unit_size=2)
    expected = [whole(sampler.bootstrap(60, 1)), whole(sampler.permute(TWO, 60, 1))]
    monkeypatch.setattr(draws, "_MAX_BLOCK", 7)
    found = [whole(sampler.bootstrap(60, 1)), whole(sampler.permute(TWO, 60, 1))]
    for one, other in zip(found, expected, strict=True):
        assert (one == other).all()
    fewer = whole(sampler.bootstrap(20, 1))
    assert (fewer == expected[0][:20]).all()


def test_whole_blocks_of_a_table_stay_when_replicates_are_added() -> None:
    sampler = TableSampler(TABLE)
    for draw in (sampler.bootstrap, lambda n, seed: sampler.permute(ONE, n, seed)):
        few, many = whole(draw(draws._MAX_BLOCK, 1)), whole(draw(draws._MAX_BLOCK + 300, 1))
        assert (many[: draws._MAX_BLOCK] == few).all()


def test_outcomes_with_few_rows_are_pooled_where_that_costs_less() -> None:
    table = np.full((3000, 20), 2, dtype=np.int64)
    table[::3] = 50
    of_class = np.repeat(np.arange(500), 6)
    of_pair = np.repeat(np.arange(1500), 2)
    for strata in (np.zeros(3000, int), of_class):
        assert (FixedMargins(table, strata)._pooled == (table[:, 0] == 2)).all()
    alone = FixedMargins(table, of_pair)._pooled.reshape(-1, 2)
    assert (alone.any(axis=1) == alone.all(axis=1)).all()
    assert not FixedMargins(table * 100, of_class)._pooled.any()
    assert not FixedMargins(table[:6], of_class[:6])._pooled.any()


# Exchange: which rows may exchange groups.


def exchanges(group: list[int], unit: list[int], stratum: list[int]) -> set[tuple[int, ...]]:
    """All groups of the rows that 300 shuffles reach."""
    groups = np.array(group)
    exchange = Exchange.of(groups, np.array(unit), np.array(stratum))
    rng = np.random.default_rng(0)
    return {tuple(exchange.shuffle(groups, rng).tolist()) for _ in range(300)}


def test_units_of_one_group_exchange_as_a_whole() -> None:
    found = exchanges([0, 0, 1, 1, 1], [0, 0, 1, 1, 1], [0] * 5)
    assert found == {(0, 0, 1, 1, 1), (1, 1, 0, 0, 0)}


def test_units_of_several_groups_exchange_within() -> None:
    assert exchanges([0, 1, 1, 0], [0, 0, 1, 1], [0] * 4) == {
        (0, 1, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (1, 0, 1, 0)
    }  # fmt: skip


def test_units_of_one_and_of_several_groups_do_not_mix() -> None:
    found = exchanges([0, 0, 1, 0, 1], [0, 0, 1, 2, 2], [0] * 5)
    assert found == {
        (0, 0, 1, 0, 1), (0, 0, 1, 1, 0), (1, 1, 0, 0, 1), (1, 1, 0, 1, 0)
    }  # fmt: skip


def test_strata_do_not_mix() -> None:
    found = exchanges([0, 1, 2, 3], [0, 1, 2, 3], [0, 0, 1, 1])
    assert found == {(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)}


def test_a_unit_that_spans_strata_moves_as_a_whole_with_those_of_its_largest_part() -> None:
    # Units 0 (strata 0, 0, 1) and 1 (stratum 0) exchange; unit 2 is alone in stratum 1.
    found = exchanges([0, 0, 0, 1, 2], [0, 0, 0, 1, 2], [0, 0, 1, 0, 1])
    assert found == {(0, 0, 0, 1, 2), (1, 1, 1, 0, 2)}


def test_units_alike_in_their_strata_exchange_among_themselves() -> None:
    # 20 units span both strata, 20 have rows in stratum 0 only: the two kinds do not mix.
    unit = np.concatenate([np.repeat(np.arange(20), 2), np.arange(20, 40)])
    stratum = np.concatenate([np.tile([0, 1], 20), np.zeros(20, int)])
    group = np.concatenate([np.repeat(np.arange(20) % 2, 2), 2 + np.arange(20) % 2])
    exchange = Exchange.of(group, unit, stratum)
    found = exchange.shuffle(group, np.random.default_rng(1))
    assert set(found[:40].tolist()) == {0, 1}
    assert set(found[40:].tolist()) == {2, 3}
    assert (found[:40:2] == found[1:40:2]).all()
    assert (found != group).any()


def test_a_unit_with_another_group_in_each_stratum_exchanges_part_by_part() -> None:
    found = exchanges([0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 1])
    assert found == {(0, 1, 1, 0), (1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1)}


def test_numbers_of_units_and_strata_are_names_only() -> None:
    group, unit, stratum = (
        np.array(x) for x in ([0, 0, 1, 1, 0], [4, 4, 9, 9, 2], [3, 8, 3, 8, 3])
    )
    first, second = (
        Exchange.of(group, u, s).shuffle(group, np.random.default_rng(7))
        for u, s in ((unit, stratum), (np.array([1, 1, 2, 2, 0]), np.array([0, 1, 0, 1, 0])))
    )
    assert first.tolist() == second.tolist()
