"""LangGraph's long-term store, with one JSON file for each item.

An item with the namespace `("users", "ada")` and the key `prefs` is
`store/users/ada/prefs.json`. The puts of one batch are one commit.

There is no checkpointer: a checkpoint is a snapshot of a whole graph after each step, which the next
one replaces, and Quipu keeps every version. Keep checkpoints in LangGraph's SQLite or PostgreSQL
saver, and what should outlast a thread here.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timezone
from typing import Any, Iterable, Mapping
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from ._errors import NotFound, QuipuError
from ._project import Project
from ._values import Operation, Remove, Write

__all__ = ["QuipuStore"]

_Namespace = tuple[str, ...]
_Name = tuple[_Namespace, str]
_MOST_SECTIONS = 200


class QuipuStore(BaseStore):
    """Items in the folder `under` of a project.

    `search` with a query asks `recall`, which reads only files that a rule names:
    `[[files]] path = "store/**" class = "overwrite"` in `quipu.toml`.
    """

    def __init__(self, project: Project, *, under: str = "store") -> None:
        self.project = project
        self.under = under.strip("/")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out all reads, and then all puts in one commit."""
        results: list[Result] = []
        puts: dict[_Name, PutOp] = {}
        for op in ops:
            if isinstance(op, GetOp):
                results.append(self._get((op.namespace, op.key)))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list_namespaces(op))
            elif isinstance(op, PutOp):
                # The last put of an item counts.
                puts.pop((op.namespace, op.key), None)
                puts[(op.namespace, op.key)] = op
                results.append(None)
            else:
                raise TypeError(f"unknown operation: {type(op).__name__}")
        self._put(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _put(self, puts: Mapping[_Name, PutOp]) -> None:
        operations: list[Operation] = []
        now = datetime.now(timezone.utc)
        for name, op in puts.items():
            old = self._get(name)
            if op.value is not None:
                created = now if old is None else old.created_at
                text = _render(op.value, created, now)
                operations.append(Write(self._path(name), text))
            elif old is not None:
                operations.append(Remove(self._path(name)))
        if operations:
            self.project.commit(operations, force=True)

    def _get(self, name: _Name) -> Item | None:
        try:
            text = self.project.read(self._path(name)).text
        except NotFound:
            return None
        return Item(**_parse(text), namespace=name[0], key=name[1])

    def _search(self, op: SearchOp) -> list[SearchItem]:
        names = [name for name in self._names() if name[0][: len(op.namespace_prefix)] == op.namespace_prefix]
        scores: dict[_Name, float] = {}
        if op.query:
            scores = self._scores(op.query, op.namespace_prefix, names)
            names = sorted((name for name in names if name in scores), key=lambda n: -scores[n])
        found: list[SearchItem] = []
        for name in names:
            item = self._get(name)
            if item is None or not _matches(item.value, op.filter):
                continue
            found.append(
                SearchItem(
                    namespace=item.namespace,
                    key=item.key,
                    value=item.value,
                    created_at=item.created_at,
                    updated_at=item.updated_at,
                    score=scores.get(name),
                )
            )
        return found[op.offset : op.offset + op.limit]

    def _scores(self, query: str, prefix: _Namespace, names: list[_Name]) -> dict[_Name, float]:
        """The best score of each item that answers the query."""
        within = "/".join([self.under, *map(_encode, prefix), "**"])
        answer = self.project.command("recall", f"--in={within}", "-k", str(_MOST_SECTIONS), "--", query)
        if names and answer.data["covers"]["files"] == 0:
            rule = f'[[files]] path = "{self.under}/**" class = "overwrite"'
            raise QuipuError(
                f"`{self.under}/` cannot be searched, because no rule names its files",
                repair=f"add to quipu.toml: {rule}",
            )
        scores: dict[_Name, float] = {}
        for hit in answer.data["hits"]:
            name = self._name(hit["path"])
            if name is not None:
                scores.setdefault(name, hit["score"])
        return scores

    def _list_namespaces(self, op: ListNamespacesOp) -> list[_Namespace]:
        found = {name[0] for name in self._names()}
        found = {space for space in found if all(_agrees(space, c) for c in op.match_conditions or ())}
        if op.max_depth is not None:
            found = {space[: op.max_depth] for space in found}
        return sorted(found)[op.offset : op.offset + op.limit]

    def _names(self) -> list[_Name]:
        status = self.project.status()
        paths = sorted([*(file.path for file in status.files if file.version), *status.free])
        return [name for path in paths if (name := self._name(path)) is not None]

    def _path(self, name: _Name) -> str:
        return "/".join([self.under, *map(_encode, name[0]), f"{_encode(name[1])}.json"])

    def _name(self, path: str) -> _Name | None:
        within, _, rest = path.partition(f"{self.under}/")
        if within or not rest.endswith(".json"):
            return None
        *namespace, key = (unquote(part) for part in rest.removesuffix(".json").split("/"))
        return tuple(namespace), key


def _encode(label: str) -> str:
    """A label as the name of a file: any text, and none that leaves the folder."""
    return quote(label, safe=" ").replace(".", "%2E")


def _render(value: Mapping[str, Any], created: datetime, updated: datetime) -> str:
    item = {"value": value, "created_at": created.isoformat(), "updated_at": updated.isoformat()}
    return json.dumps(item, ensure_ascii=False, indent=2) + "\n"


def _parse(text: str) -> dict[str, Any]:
    item = json.loads(text)
    times = {name: datetime.fromisoformat(item[name]) for name in ("created_at", "updated_at")}
    return {"value": item["value"], **times}


def _agrees(namespace: _Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part))


def _matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_fits(value.get(key), condition) for key, condition in (wanted or {}).items())


def _fits(value: Any, condition: Any) -> bool:
    """Whether a field fits a value, or operators such as `{"$gte": 3}`."""
    if isinstance(condition, dict) and any(str(key).startswith("$") for key in condition):
        return all(_compares(value, sign, than) for sign, than in condition.items())
    if isinstance(condition, dict):
        return isinstance(value, dict) and all(_fits(value.get(k), c) for k, c in condition.items())
    return bool(value == condition)


def _compares(value: Any, sign: str, than: Any) -> bool:
    if sign == "$eq":
        return bool(value == than)
    if sign == "$ne":
        return bool(value != than)
    if sign not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"unknown operator: {sign}")
    if value is None:
        return False
    value, than = float(value), float(than)
    return bool(
        {"$gt": value > than, "$gte": value >= than, "$lt": value < than, "$lte": value <= than}[sign]
    )
