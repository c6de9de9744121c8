"""The faults by name: what strikes, how often, on which load, and what may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from loadgen.bench.faults import strikes
from loadgen.bench.faults.load import SKEW_S, Shape
from loadgen.bench.faults.strikes import Strike

GAP_S = (1.0, 9.0)


@dataclass(frozen=True)
class Fault:
    """One kind of trouble."""

    strike: Strike
    times: int
    about: str
    gap_s: tuple[float, float] = GAP_S
    lasts_s: float = 0.0
    """How long a strike takes, about."""
    windows_a_strike: float = 8.0
    shape: Mapping[str, object] = field(default_factory=dict)
    """What differs from the plain load."""
    clocks: tuple[float, ...] = ()
    proxied: bool = False
    small_disk: bool = False
    former: bool = False
    durable: bool = False
    """Whether the broker's log must outlive it: not the embedded one's."""
    malformed: int = 0
    idempotent: bool = False
    """Whether agents need idempotent producers, which the embedded broker refuses."""
    live: bool = False
    """Whether the data end about now, so that clocks matter."""

    def planned(self, times: int | None) -> Fault:
        """Return the fault with another number of strikes, where strikes are what it is about."""
        return self if times is None or self.strike is strikes.nothing else replace(self, times=times)

    def load_shape(self, now: float) -> Shape:
        """Return the load for all strikes: long enough that there always is work under way."""
        windows = max(120, round(self.times * self.windows_a_strike))
        shape = Shape(windows=windows, **self.shape)  # type: ignore[arg-type]
        if not self.live:
            return shape
        start = (now - windows * 300.0) // 86_400 * 86_400
        return replace(shape, windows=round((now // 600 * 600 - start) / 300), start=start)

    @property
    def seconds(self) -> float:
        """How long the strikes take, about: so long the load should last."""
        return self.times * (sum(self.gap_s) / 2 + self.lasts_s)


CATALOGUE: Mapping[str, Fault] = {
    "kill": Fault(strikes.kill_stage, 20, "SIGKILL of a worker, each stage in turn", windows_a_strike=4),
    "freeze": Fault(
        strikes.freeze_stage,
        5,
        "SIGSTOP of a worker for longer than its session, then SIGCONT",
        lasts_s=strikes.FROZEN_S,
        windows_a_strike=25,
    ),
    "rebalance": Fault(
        strikes.join_and_leave,
        5,
        "a worker more joins a stage, one leaves in order",
        lasts_s=10,
        windows_a_strike=25,
    ),
    "kill-store": Fault(strikes.kill_store, 5, "SIGKILL of the store", lasts_s=3, windows_a_strike=25),
    "freeze-store": Fault(
        strikes.freeze_store, 2, "SIGSTOP of the store", lasts_s=strikes.AWAY_S, windows_a_strike=60
    ),
    "store-away": Fault(strikes.store_away, 1, "the store is stopped and comes back", lasts_s=strikes.AWAY_S),
    "slow-store": Fault(
        strikes.slow_store, 2, "70 % of the inserts take 3 s longer", lasts_s=15, windows_a_strike=60
    ),
    "refusing-store": Fault(
        strikes.refusing_store, 2, "70 % of the inserts answered with 503", lasts_s=15, windows_a_strike=60
    ),
    "losing-store": Fault(
        strikes.losing_store,
        2,
        "50 % of the inserts applied, their answers lost",
        lasts_s=15,
        windows_a_strike=60,
    ),
    "full-disk": Fault(
        strikes.full_disk,
        2,
        "the store's file system is full",
        lasts_s=strikes.AWAY_S,
        windows_a_strike=60,
        small_disk=True,
    ),
    "kill-broker": Fault(
        strikes.kill_broker, 3, "SIGKILL of a broker", lasts_s=10, windows_a_strike=40, durable=True
    ),
    "freeze-broker": Fault(
        strikes.freeze_broker,
        2,
        "SIGSTOP of a broker for longer than sessions",
        lasts_s=strikes.FROZEN_S,
        windows_a_strike=60,
        durable=True,
    ),
    "silent-broker": Fault(
        strikes.silence_broker,
        1,
        "nothing passes to or from the broker for longer than sessions and requests",
        lasts_s=strikes.SILENT_S,
        proxied=True,
    ),
    "cut-broker": Fault(
        strikes.cut_broker,
        10,
        "every connection to the broker is cut, with what was under way",
        lasts_s=1,
        windows_a_strike=15,
        proxied=True,
        idempotent=True,
    ),
    "clock-skew": Fault(
        strikes.nothing,
        3,
        "agents' clocks 4 minutes ahead and behind, workers' 5 minutes",
        shape={"skewed": (SKEW_S, -SKEW_S, 0.0)},
        clocks=(300.0, -300.0),
        live=True,
    ),
    "late-data": Fault(
        strikes.nothing, 3, "a third of the profiles come 10 minutes late", shape={"late": 0.33}
    ),
    "repeated": Fault(
        strikes.nothing,
        3,
        "an agent publishes a tenth of its messages twice, at once or a window later",
        shape={"repeated": 0.1},
    ),
    "malformed": Fault(
        strikes.nothing, 3, "20,000 messages that are none, between the others", malformed=20_000
    ),
    "roll": Fault(
        strikes.roll,
        6,
        "workers of the former version replaced stage by stage, on its stored data",
        lasts_s=8,
        windows_a_strike=25,
        former=True,
    ),
}
