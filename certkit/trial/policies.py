"""What a reference agent believes of its world, and what it would do next.

A `Belief` is made from observations alone: `update` takes in what a tool returned, `next` gives the next
call. It trusts what it is given. `expected` says what a call should return by what is known; careful agents
compare before they update. `fallback` and `verification` are the calls that the world's manual allows.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from certkit.trial.worlds.world import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Result = dict[str, Any]


class Belief(Protocol):
    """What an agent believes.

    Attributes:
        manual: the tool that tells how to go on otherwise.
    """

    manual: str

    def update(self, action: Action, result: Result) -> None:
        """Take in what a call returned."""

    def next(self) -> Action | None:
        """Return the next call, None where the task is done or nothing can be done."""

    def done(self) -> bool:
        """Tell whether the task is believed to be done."""

    def expected(self, action: Action) -> Result:
        """Return what a call should say of things that are known, where it says anything of them."""

    def fallback(self, action: Action, item: Mapping[str, Any]) -> Action | None:
        """Return another call with the same end, by what the manual or memory says."""

    def verification(self, item: Mapping[str, Any]) -> Action:
        """Return the call that tells the truth, by what the manual or memory says."""

    def accept(self, result: Result) -> None:
        """Believe the result of the verification."""


class RobotBelief:
    """A belief about ``robotics``; cells are lists of two numbers."""

    manual = "read_manual"

    def __init__(self) -> None:
        self.known: Result = {}
        self.placed = False

    def update(self, action: Action, result: Result) -> None:
        """Take in what a call returned; a held item is where the robot is."""
        self.known |= result
        self.placed = self.placed or action.tool == "place"

    def done(self) -> bool:
        """Tell whether the item was placed."""
        return self.placed

    def next(self) -> Action | None:
        """Go to the item, over the charger if the battery is too low, and bring it to the goal."""
        known = self.known
        if "item" not in known:
            return Action("scan", {})
        if self.placed:
            return None
        target = known["goal"] if known["holding"] else known["item"]
        ways = self._ways(known["robot"])
        if known["robot"] == target:
            return Action("place" if known["holding"] else "pick", {})
        needed = len(ways.get(tuple(target), ())) + 1
        if not known["holding"]:
            needed += len(self._ways(target).get(tuple(known["goal"]), ()))
        charger = known["charger"]
        low = known["battery"] < needed and known["battery"] < known["capacity"]
        if low and known["robot"] == charger:
            return Action("charge", {})
        if low and 0 < len(ways.get(tuple(charger), ())) < known["battery"]:
            target = charger
        way = ways.get(tuple(target))
        return Action("move", {"x": way[0][0], "y": way[0][1]}) if way else None

    def _ways(self, start: list[int]) -> dict[tuple[int, ...], list[tuple[int, int]]]:
        """Return a shortest way to every cell that can be reached, without the start."""
        closed = {(x, y) for x, y in self.known["walls"]} | {(x, y) for x, y in self.known["restricted"]}
        first = (start[0], start[1])
        ways: dict[tuple[int, ...], list[tuple[int, int]]] = {first: []}
        waiting = deque([first])
        while waiting:
            x, y = waiting.popleft()
            for cell in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)):
                inside = 0 <= cell[0] < self.known["size"] and 0 <= cell[1] < self.known["size"]
                if inside and cell not in closed and cell not in ways:
                    ways[cell] = [*ways[x, y], cell]
                    waiting.append(cell)
        return ways

    def expected(self, action: Action) -> Result:
        """Return the robot's cell, the battery and the goal."""
        known = self.known
        if not known:
            return {}
        moved = action.tool in {"move", "crawl"}
        return {
            "robot": [action.arguments["x"], action.arguments["y"]] if moved else known["robot"],
            "battery": known["capacity"] if action.tool == "charge" else known["battery"] - moved,
            "goal": known["goal"],
        }

    def fallback(self, action: Action, item: Mapping[str, Any]) -> Action | None:
        """Return the same move with the second drive."""
        if action.tool != "move" or "code" not in item:
            return None
        return Action("crawl", {**action.arguments, "code": item["code"]})

    def verification(self, item: Mapping[str, Any]) -> Action:
        """Return the question to the beacon."""
        return Action("locate", {"beacon": item.get("beacon", "")})

    def accept(self, result: Result) -> None:
        """Believe the beacon."""
        self.known |= result


class DriverBelief:
    """A belief about ``logistics``."""

    manual = "read_handbook"

    def __init__(self) -> None:
        self.known: Result = {}
        self.orders: dict[str, dict[str, Any]] = {}
        self.delivered: set[str] = set()

    def update(self, action: Action, result: Result) -> None:
        """Take in what a call returned; what is said of an order later replaces what was said before."""
        for order in result.get("orders", ()):
            self.orders[order["order"]] = self.orders.get(order["order"], {}) | order
        self.known |= {name: value for name, value in result.items() if name != "orders"}
        if action.tool == "deliver":
            self.delivered.add(action.arguments["order"])

    def done(self) -> bool:
        """Tell whether every order was handed over."""
        return bool(self.orders) and self.delivered >= self.orders.keys()

    def next(self) -> Action | None:
        """Load by latest time as much as fits; drive to the order that has to be there first."""
        known = self.known
        if not self.orders:
            return Action("list_orders", {})
        if self.done():
            return None
        urgent = sorted(self.orders.values(), key=lambda order: (order["latest"], order["order"]))
        loaded = [order for order in urgent if order["order"] in known["loaded"]]
        here = [order for order in loaded if order["city"] == known["at"]]
        if here:
            return Action("deliver", {"order": here[0]["order"]})
        size = sum(order["size"] for order in loaded)
        if known["at"] == "Depot":
            for order in urgent:
                waiting = order["order"] not in known["loaded"] and order["order"] not in self.delivered
                if waiting and size + order["size"] <= known["capacity"]:
                    return Action("load", {"order": order["order"]})
        if not loaded:
            return Action("drive", {"city": "Depot"}) if known["at"] != "Depot" else None
        return self._drive(loaded)

    def _drive(self, loaded: list[dict[str, Any]]) -> Action | None:
        """Drive to the nearest city from which the most urgent order is still in time."""
        minutes, at, minute = self.known["minutes"], self.known["at"], self.known["minute"]
        first = loaded[0]
        for order in sorted(
            loaded, key=lambda order: (minutes.get(at, {}).get(order["city"], 0), order["order"])
        ):
            arrival = max(minute + minutes.get(at, {}).get(order["city"], 0), order["earliest"])
            on = 0 if order is first else minutes.get(order["city"], {}).get(first["city"], 0)
            if arrival <= order["latest"] and arrival + on <= first["latest"]:
                return Action("drive", {"city": order["city"]})
        return Action("drive", {"city": first["city"]})

    def expected(self, action: Action) -> Result:
        """Return the place and the minute; the orders stay as they were listed."""
        known = self.known
        if not known:
            return {}
        drove = action.tool in {"drive", "detour"}
        at = action.arguments["city"] if drove else known["at"]
        minute = known["minute"] + (known["minutes"][known["at"]].get(at, 0) if drove else 0)
        if action.tool == "deliver":
            minute = max(minute, self.orders[action.arguments["order"]]["earliest"])
        return {"at": at, "minute": minute, "orders": []}

    def fallback(self, action: Action, item: Mapping[str, Any]) -> Action | None:
        """Return the same drive by another road."""
        if action.tool != "drive" or "permit" not in item:
            return None
        return Action("detour", {**action.arguments, "permit": item["permit"]})

    def verification(self, item: Mapping[str, Any]) -> Action:
        """Return the question to the desk."""
        return Action("confirm", {"desk": item.get("desk", "")})

    def accept(self, result: Result) -> None:
        """Believe the desk."""
        self.update(Action("confirm", {}), result)


BELIEFS: Final[Mapping[str, Callable[[], Belief]]] = {"robotics": RobotBelief, "logistics": DriverBelief}
"""By the world that they are about; each knows nothing yet."""
