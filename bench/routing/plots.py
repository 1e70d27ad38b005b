"""Draws plots of the comparison, for the documentation."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from bench.routing.methods import CONSISTENT, HEURISTICS, UNIFORM, grow
from bench.routing.world import World, pair_names, settings_for
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FormatStrFormatter, NullLocator

from tandem.routing.planning.construct import construct
from tandem.routing.planning.settings import FloatArray
from tandem_core.routing.function import RoutingFunction

mpl.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {
    UNIFORM: "#999999",
    CONSISTENT: "#d95f02",
    "scan": "#7570b3",
    "redist": "#66a61e",
    "readj": "#1f78b4",
}
METHODS = (UNIFORM, CONSISTENT, *HEURISTICS)
PAIRS = 10


def draw_all(folder: Path) -> list[Path]:
    """Draw every plot into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return [
        draw_idea(folder / "routing-idea.png"),
        draw_pairs(folder / "routing-pairs.png"),
        draw_skew(folder / "routing-skew.png"),
    ]


def draw_idea(path: Path) -> Path:
    """Draw the load of ten pairs under three functions: hot keys on top of the ring's share."""
    world, settings = World(), settings_for("LLL")
    plain = RoutingFunction.plain(pair_names(PAIRS))
    built = construct(world.profile, pair_names(PAIRS), plain, settings).function
    only_keys = RoutingFunction(plain.pairs, plain.vnodes, built.hot_hashes, built.hot_owners)
    titles = ("ring alone", "hot keys placed singly", "and weights on the ring")
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
    for axis, title, function in zip(axes, titles, (plain, only_keys, built), strict=True):
        tail, hot = _shares(world, function, built)
        axis.bar(range(PAIRS), tail, color="#c6dbef", label="all other keys")
        bottom = tail.copy()
        for rank, (owner, share) in enumerate(hot):
            colour = plt.get_cmap("autumn")(min(rank / 12, 0.9))
            axis.bar(owner, share, bottom=bottom[owner], color=colour, edgecolor="white", lw=0.4)
            bottom[owner] += share
        axis.axhline(1, color="black", lw=0.8, ls=":")
        axis.set_title(f"{title}: max/min {bottom.max() / bottom.min():.2f}", fontsize=10)
        axis.set_xlabel("pair")
        axis.set_xticks(range(PAIRS))
    axes[0].set_ylabel("load / fair share")
    axes[0].legend(fontsize=8, loc="lower left")
    return _save(figure, path)


def _shares(
    world: World, function: RoutingFunction, built: RoutingFunction
) -> tuple[FloatArray, list[tuple[int, float]]]:
    """Load of each pair without the hot keys, and owner and load of each hot key."""
    owners = function.owner_of(world.hashes)
    single = np.isin(world.hashes, built.hot_hashes)
    load = world.frequencies * PAIRS
    tail: FloatArray = np.zeros(PAIRS)
    np.add.at(tail, owners[~single], load[~single])
    return tail, list(zip(owners[single].tolist(), load[single].tolist(), strict=True))


def draw_pairs(path: Path) -> Path:
    """Draw imbalance and migration against the number of pairs."""
    runs, most = 3, 32
    curves = {}
    for method in METHODS:
        grown = [
            grow(method, "tandem", World(seed=run), settings_for("LLL"), most)
            for run in range(runs)
        ]
        curves[method] = np.array([[(s.imbalance, s.migration) for s in steps] for steps in grown])
    return _two_panels(path, range(2, most + 1), "pairs", {k: v.mean(0) for k, v in curves.items()})


def draw_skew(path: Path) -> Path:
    """Draw imbalance and migration against the skew of keys."""
    skews, runs = np.round(np.arange(0.2, 1.21, 0.1), 1), 3
    curves = {}
    for method in METHODS:
        points = []
        for skew in skews:
            last = [
                grow(method, "tandem", World(skew=skew, seed=run), settings_for("LLL"), PAIRS)[-1]
                for run in range(runs)
            ]
            points.append(np.mean([(s.imbalance, s.migration) for s in last], axis=0))
        curves[method] = np.array(points)
    return _two_panels(path, skews, "Zipf skew z (10 pairs)", curves)


def _two_panels(path: Path, xs: object, label: str, curves: dict[str, FloatArray]) -> Path:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
    for method, points in curves.items():
        style = {"color": COLOURS[method], "label": method, "lw": 1.6}
        left.plot(xs, points[:, 0], **style)
        right.plot(xs, points[:, 1], **style)
    left.axhline(1, color="black", lw=0.8, ls=":")
    left.set_ylabel("relative imbalance b (aim: 1)")
    right.set_ylabel("relative migration m")
    for axis, ticks in ((left, (0.8, 1, 1.5, 2, 3, 4, 6)), (right, (0.5, 1, 2, 5, 10, 20, 30))):
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(FixedLocator(ticks))
        axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    left.legend(fontsize=8)
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
