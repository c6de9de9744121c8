"""Self-organising map (Kohonen 1990), by which SOMDedup groups similar candidates (FBDetect §5.4.7).

The map has ⌈√n⌉ × ⌈√n⌉ nodes for n items. It starts as the plane of the two main directions of the items, and
is trained in batches: each round assigns every item to the node nearest to it, and then makes each node the
mean of the items around it, weighted by a Gaussian of the distance on the map that narrows from round to
round. Nothing is drawn at random, so the same items give the same map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pipeline.model import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SomConfig:
    """Settings of the map; §5.4.7 gives its size, and leaves the rest to Kohonen."""

    rounds: int = 12  # after which more change no assignment that matters
    reach: int = 2  # nodes: there are as many nodes as items, so that like ones may have an empty one between
    final_radius: float = 0.5  # nodes: at the end a node hardly pulls its neighbours
    dimensions: int = (
        32  # main directions of the items that are kept; the rest is mostly noise of projections
    )
    merge_distance: float = 2**0.5  # what two candidates are apart that have nothing in common in one block


@dataclass(frozen=True, slots=True)
class Map:
    """A trained map."""

    side: int
    nearest: IntArray  # (items,) each item's node


def train_map(items: FloatArray, *, config: SomConfig | None = None) -> Map:
    """Train a map of ⌈√n⌉ × ⌈√n⌉ nodes on n items.

    Args:
        items: (items, columns)
        config: Settings.

    Returns:
        The map, its columns the main directions of the items.
    """
    config = config or SomConfig()
    side = max(int(np.ceil(np.sqrt(len(items)))), 1)
    reduced, spreads = _main_directions(items, config.dimensions)
    nodes = _plane(side, spreads)
    nearest = _nearest(reduced, nodes)
    for radius in _radii(side, config):
        nodes = _smoothed(reduced, nearest, side, radius, nodes)
        nearest = _nearest(reduced, nodes)
    return Map(side, nearest)


def cluster_items(items: FloatArray, *, config: SomConfig | None = None) -> IntArray:
    """Return the number of each item's cluster: (items,), in the order of their first items.

    Nearby items on the map are one cluster: those of one node, and those of nodes within ``reach`` of each
    other if the means of their items are less than ``merge_distance`` apart.

    Args:
        items: (items, columns)
        config: Settings.
    """
    config = config or SomConfig()
    if not len(items):
        return np.zeros(0, dtype=np.int64)
    trained = train_map(items, config=config)
    occupied, position = np.unique(trained.nearest, return_inverse=True)
    counts = np.bincount(position)
    means = np.zeros((len(occupied), items.shape[1]))
    np.add.at(means, position, items)
    means /= counts[:, np.newaxis]
    row, second = _nearby(occupied, trained.side, config.reach)
    near = np.square(means[row] - means[second]).sum(axis=1) < config.merge_distance**2
    links = coo_array((np.ones(near.sum()), (row[near], second[near])), shape=(len(occupied),) * 2)
    _, component = connected_components(links, directed=False)
    _, first, labels = np.unique(component[position], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels].astype(np.int64)


def _main_directions(items: FloatArray, dimensions: int) -> tuple[FloatArray, FloatArray]:
    """Return the items in their main directions, and the spread along each: (items, d), (d,)."""
    centred = items - items.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / max(len(items), 1))
    order = np.argsort(-values, kind="stable")[:dimensions]
    vectors = vectors[:, order]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(len(order))] < 0, -1.0, 1.0)
    return centred @ vectors, np.sqrt(np.maximum(values[order], 0.0))


def _plane(side: int, spreads: FloatArray) -> FloatArray:
    """Return nodes that span two standard deviations either way along the two main directions."""
    nodes = np.zeros((side, side, len(spreads)))
    steps = np.linspace(-2.0, 2.0, side) if side > 1 else np.zeros(1)
    for axis, spread in enumerate(spreads[:2].tolist()):
        nodes[..., axis] = np.expand_dims(steps * spread, 1 - axis)
    return nodes.reshape(side * side, -1)


def _radii(side: int, config: SomConfig) -> list[float]:
    """Return the Gaussian's width in nodes for each round, from half the map down."""
    first = max(side / 2, config.final_radius)
    return [float(radius) for radius in np.geomspace(first, config.final_radius, config.rounds)]


def _nearest(items: FloatArray, nodes: FloatArray) -> IntArray:
    """Return the nearest node of each item, the first of equals."""
    # Single precision is twice as fast, and nodes that it cannot distinguish are the same to an item.
    positions, wanted = nodes.astype(np.float32), items.astype(np.float32)
    lengths = np.square(positions).sum(axis=1) / 2
    units = np.empty(len(items), dtype=np.int64)
    block = max(1, 1_000_000 // len(nodes))  # distances at a time: 4 MB, which a cache holds
    for first in range(0, len(items), block):
        part = slice(first, first + block)
        units[part] = (wanted[part] @ positions.T - lengths).argmax(axis=1)
    return units


def _smoothed(
    items: FloatArray, nearest: IntArray, side: int, radius: float, nodes: FloatArray
) -> FloatArray:
    """Return each node as the weighted mean of the items around it on the map."""
    sums = np.zeros((side * side, items.shape[1] + 1))
    np.add.at(sums, nearest, np.hstack([items, np.ones((len(items), 1))]))
    steps = np.arange(side)
    kernel = np.exp(-0.5 * np.square((steps[:, None] - steps) / radius))
    # A Gaussian of two directions is one after the other.
    cube = sums.reshape(side, side, -1)
    cube = np.einsum("ij,jkd->ikd", kernel, cube, optimize=True)
    cube = np.einsum("ij,kjd->kid", kernel, cube, optimize=True)
    flat = cube.reshape(side * side, -1)
    weights = flat[:, -1:]
    # Far from every item the weights underflow: such a node stays where it is.
    smoothed: FloatArray = np.divide(flat[:, :-1], weights, out=nodes.copy(), where=weights > 1e-300)
    return smoothed


def _nearby(occupied: IntArray, side: int, reach: int) -> tuple[IntArray, IntArray]:
    """Return pairs of occupied nodes that are near each other on the map, as indexes of ``occupied``."""
    position = np.full(side * side, -1)
    position[occupied] = np.arange(len(occupied))
    row, column = np.divmod(occupied, side)
    pairs = []
    ahead = [(down, right) for down in range(reach + 1) for right in range(-reach, reach + 1)]
    for down, right in ahead[reach + 1 :]:
        inside = (row + down < side) & (column + right >= 0) & (column + right < side)
        there = position[(row + down)[inside] * side + (column + right)[inside]]
        here = np.flatnonzero(inside)[there >= 0]
        pairs.append((here, there[there >= 0]))
    first, second = (np.concatenate(side_of) for side_of in zip(*pairs, strict=True))
    return first, second
