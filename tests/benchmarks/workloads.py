"""The five workloads of the engine: operations, entity, query, and the same work written by hand.

By hand means: one loop, direct calls with the same inputs, the same maps built. It knows what the engine has to find
out (which resolvers, in which order, that nothing is missing and nothing is asked twice), so it is the floor, not a
rival.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psi.graph import Env, Graph, Resolver, resolver

__all__ = ["WORKLOADS", "Workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    about: str
    graph: Graph
    query: str
    entity: dict[str, Any]
    by_hand: Callable[[dict[str, Any]], dict[str, Any]]
    pathom_us: tuple[int, int]  # Pathom3 on the JVM, warm, plan cache on: default, fastest configuration


ENV = Env({}, None)


def _w1() -> Workload:
    def next_to(source: str, target: str) -> Resolver:
        @resolver(name=f"{source}-{target}", input=[source], output=[target])
        def add_one(env: Env, data: dict[str, Any]) -> dict[str, Any]:
            return {target: data[source] + 1}

        return add_one

    chain = [next_to(source, target) for source, target in zip("abcde", "bcdef", strict=True)]
    ab, bc, cd, de, ef = (link.function for link in chain)

    def by_hand(entity: dict[str, Any]) -> dict[str, Any]:
        b = ab(ENV, {"a": entity["a"]})["b"]
        c = bc(ENV, {"b": b})["c"]
        d = cd(ENV, {"c": c})["d"]
        e = de(ENV, {"d": d})["e"]
        f = ef(ENV, {"e": e})["f"]
        return {"b": b, "c": c, "d": d, "e": e, "f": f}

    return Workload(
        name="W1",
        about="five resolvers in a chain",
        graph=Graph(chain),
        query="[:b :c :d :e :f]",
        entity={"a": 1},
        by_hand=by_hand,
        pathom_us=(49, 38),
    )


@resolver(input=["item/name", "item/price"], output=["item/label"])
def item_label(env: Env, item: dict[str, Any]) -> dict[str, Any]:
    return {"item/label": f"{item['item/name']}:{item['item/price']}"}


def _item(number: int) -> dict[str, Any]:
    return {"item/name": f"item-{number}", "item/price": 3 * number}


ITEMS = "[{:items [:item/name :item/price :item/label]}]"


def _w2() -> Workload:
    @resolver(input=["item/id"], output=["item/name", "item/price"])
    def item_by_id(env: Env, item: dict[str, Any]) -> dict[str, Any]:
        number = item["item/id"]
        return {"item/name": f"item-{number}", "item/price": 3 * number}

    by_id, label = item_by_id.function, item_label.function

    def by_hand(entity: dict[str, Any]) -> dict[str, Any]:
        out = []
        for item in entity["items"]:
            found = by_id(ENV, {"item/id": item["item/id"]})
            labelled = label(ENV, {"item/name": found["item/name"], "item/price": found["item/price"]})
            out.append(
                {
                    "item/name": found["item/name"],
                    "item/price": found["item/price"],
                    "item/label": labelled["item/label"],
                }
            )
        return {"items": out}

    return Workload(
        name="W2",
        about="1000 items, two resolvers each",
        graph=Graph([item_by_id, item_label]),
        query=ITEMS,
        entity={"items": [{"item/id": number} for number in range(1000)]},
        by_hand=by_hand,
        pathom_us=(33_300, 27_600),
    )


def _w3() -> Workload:
    @resolver(input=["item/id"], output=["item/name", "item/price"], batch=True)
    def items_by_id(env: Env, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"item/name": f"item-{item['item/id']}", "item/price": 3 * item["item/id"]} for item in items]

    by_id, label = items_by_id.function, item_label.function

    def by_hand(entity: dict[str, Any]) -> dict[str, Any]:
        out = []
        for found in by_id(ENV, [{"item/id": item["item/id"]} for item in entity["items"]]):
            labelled = label(ENV, {"item/name": found["item/name"], "item/price": found["item/price"]})
            out.append(
                {
                    "item/name": found["item/name"],
                    "item/price": found["item/price"],
                    "item/label": labelled["item/label"],
                }
            )
        return {"items": out}

    return Workload(
        name="W3",
        about="the same with a batch resolver",
        graph=Graph([items_by_id, item_label]),
        query=ITEMS,
        entity={"items": [{"item/id": number} for number in range(1000)]},
        by_hand=by_hand,
        pathom_us=(45_000, 43_000),
    )


def _w4() -> Workload:
    @resolver(input=["n"], output=["n2"])
    def twice(env: Env, data: dict[str, Any]) -> dict[str, Any]:
        return {"n2": 2 * data["n"]}

    double = twice.function
    numbers = iter(range(5**4))

    def tree(level: int) -> dict[str, Any]:
        return {f"l{level}": [tree(level + 1) for _ in range(5)]} if level < 5 else {"n": next(numbers)}

    def by_hand(entity: dict[str, Any]) -> dict[str, Any]:
        first = []
        for one in entity["l1"]:
            second = []
            for two in one["l2"]:
                third = []
                for three in two["l3"]:
                    fourth = []
                    for four in three["l4"]:
                        fourth.append({"n2": double(ENV, {"n": four["n"]})["n2"]})
                    third.append({"l4": fourth})
                second.append({"l3": third})
            first.append({"l2": second})
        return {"l1": first}

    return Workload(
        name="W4",
        about="four levels of lists, 625 leaves",
        graph=Graph([twice]),
        query="[{:l1 [{:l2 [{:l3 [{:l4 [:n2]}]}]}]}]",
        entity=tree(1),
        by_hand=by_hand,
        pathom_us=(17_400, 15_300),
    )


def _w5() -> Workload:
    names = [f"row/a{number}" for number in range(13)]

    @resolver(input=["row/id"], output=names)
    def row(env: Env, data: dict[str, Any]) -> dict[str, Any]:
        n = data["row/id"]
        return {
            "row/a0": n, "row/a1": n, "row/a2": n, "row/a3": n, "row/a4": n, "row/a5": n, "row/a6": n,
            "row/a7": n, "row/a8": n, "row/a9": n, "row/a10": n, "row/a11": n, "row/a12": n,
        }  # fmt: skip

    find = row.function

    def by_hand(entity: dict[str, Any]) -> dict[str, Any]:
        out = []
        for known in entity["rows"]:
            r = find(ENV, {"row/id": known["row/id"]})
            out.append({
                "row/a0": r["row/a0"], "row/a1": r["row/a1"], "row/a2": r["row/a2"], "row/a3": r["row/a3"],
                "row/a4": r["row/a4"], "row/a5": r["row/a5"], "row/a6": r["row/a6"], "row/a7": r["row/a7"],
                "row/a8": r["row/a8"], "row/a9": r["row/a9"], "row/a10": r["row/a10"], "row/a11": r["row/a11"],
                "row/a12": r["row/a12"],
            })  # fmt: skip
        return {"rows": out}

    return Workload(
        name="W5",
        about="1000 entities, 13 attributes each",
        graph=Graph([row]),
        query=f"[{{:rows [{' '.join(f':{name}' for name in names)}]}}]",
        entity={"rows": [{"row/id": number} for number in range(1000)]},
        by_hand=by_hand,
        pathom_us=(56_600, 43_600),
    )


WORKLOADS = (_w1(), _w2(), _w3(), _w4(), _w5())
