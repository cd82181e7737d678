"""LangGraph's store over files."""

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import GetOp, PutOp
from langgraph.store.base import BaseStore

from quipu_memory import Project, QuipuError, Refused
from quipu_memory.langgraph import QuipuStore

RULE = '\n[[files]]\npath = "store/**"\nclass = "overwrite"\n'


@pytest.fixture
def store(project: Project) -> QuipuStore:
    contract = project.folder / "quipu.toml"
    contract.write_text(contract.read_text() + RULE)
    return QuipuStore(project)


def test_items_are_files(store: QuipuStore) -> None:
    store.put(("users", "ada"), "prefs", {"theme": "dark", "n": [1, {"x": None}]})
    item = store.get(("users", "ada"), "prefs")
    assert item is not None and item.value == {"theme": "dark", "n": [1, {"x": None}]}
    assert item.namespace == ("users", "ada") and item.key == "prefs"
    file = store.project.folder / "store/users/ada/prefs.json"
    assert json.loads(file.read_text())["value"]["theme"] == "dark"

    store.put(("users", "ada"), "prefs", {"theme": "light"})
    again = store.get(("users", "ada"), "prefs")
    assert again is not None
    assert again.created_at == item.created_at and again.updated_at > item.updated_at
    store.delete(("users", "ada"), "prefs")
    store.delete(("users", "ada"), "prefs")
    assert store.get(("users", "ada"), "prefs") is None


@pytest.mark.parametrize("label", ["../x", "a/b", "a b", "中文", "x.json", "%2F", "CON", "-", "*"])
def test_any_label_is_a_name_of_its_own(store: QuipuStore, label: str) -> None:
    namespace = ("n", label.replace(".", "_"))
    store.put(namespace, label, {"is": label})
    item = store.get(namespace, label)
    assert item is not None and item.value == {"is": label}
    assert store.list_namespaces() == [namespace]
    assert [found.key for found in store.search(("n",))] == [label]


def test_a_batch_is_one_commit(store: QuipuStore) -> None:
    store.project.status()  # takes the rule, which the fixture added, into the journal
    before = len(store.project.log(limit=100))
    puts = [PutOp(("n",), str(number), {"number": number}) for number in range(5)]
    results = store.batch([*puts, GetOp(("n",), "3"), PutOp(("n",), "3", {"number": 33})])
    # Reads see the state before the puts, and the last put of an item counts.
    assert results == [None] * 7
    assert len(store.project.log(limit=100)) == before + 1
    item = store.get(("n",), "3")
    assert item is not None and item.value == {"number": 33}


def test_search_filters_and_pages(store: QuipuStore) -> None:
    for number in range(6):
        store.put(("docs", "even" if number % 2 == 0 else "odd"), f"k{number}", {"n": number, "t": {"x": number % 3}})
    assert len(store.search(("docs",))) == 6
    assert len(store.search(("doc",))) == 0
    assert {item.key for item in store.search(("docs",), filter={"n": {"$gte": 2, "$lt": 4}})} == {"k2", "k3"}
    assert {item.key for item in store.search(("docs", "odd"), filter={"t": {"x": 0}})} == {"k3"}
    pages = [item.key for start in (0, 4) for item in store.search(("docs",), limit=4, offset=start)]
    assert sorted(pages) == [f"k{number}" for number in range(6)]


def test_search_with_a_question_ranks(store: QuipuStore) -> None:
    store.put(("facts",), "pets", {"text": "Ada has a grey cat called Minka"})
    store.put(("facts",), "work", {"text": "Ada maintains the billing service"})
    first = store.search(("facts",), query="what is the cat called?")[0]
    assert first.key == "pets" and first.score is not None


def test_a_question_without_a_rule_says_what_to_add(project: Project) -> None:
    store = QuipuStore(project)
    store.put(("facts",), "pets", {"text": "a grey cat"})
    with pytest.raises(QuipuError) as error:
        store.search(("facts",), query="cat")
    assert error.value.repair is not None
    rule = error.value.repair.removeprefix("add to quipu.toml: ")
    contract = project.folder / "quipu.toml"
    contract.write_text(contract.read_text() + "\n" + rule.replace(" path", "\npath").replace(" class", "\nclass") + "\n")
    assert store.search(("facts",), query="cat")[0].key == "pets"


def test_namespaces_are_listed(store: QuipuStore) -> None:
    for space in [("a", "b", "c"), ("a", "b", "d"), ("a", "x"), ("z", "c")]:
        store.put(space, "k", {"v": 1})
    assert store.list_namespaces(prefix=("a",)) == [("a", "b", "c"), ("a", "b", "d"), ("a", "x")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("z", "c")]
    assert store.list_namespaces(prefix=("a", "*"), max_depth=2) == [("a", "b"), ("a", "x")]
    assert store.list_namespaces(limit=1, offset=1) == [("a", "b", "d")]


def test_the_contract_holds(project: Project) -> None:
    contract = project.folder / "quipu.toml"
    contract.write_text(contract.read_text() + RULE.replace("overwrite", "sealed"))
    store = QuipuStore(project)
    store.put(("n",), "k", {"v": 1})
    with pytest.raises(Refused):
        store.put(("n",), "k", {"v": 2})
    item = store.get(("n",), "k")
    assert item is not None and item.value == {"v": 1}


async def test_async_calls(store: QuipuStore) -> None:
    await asyncio.gather(*(store.aput(("n",), str(n), {"n": n}) for n in range(5)))
    found = await store.asearch(("n",))
    assert {item.value["n"] for item in found} == set(range(5))


def test_a_graph_remembers_across_threads(store: QuipuStore) -> None:
    def note(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        known = store.search(("users", "ada"))
        store.put(("users", "ada"), f"said-{len(known)}", {"text": state["messages"][-1].content})
        return {"messages": [("ai", f"I know {len(known)} things")]}

    builder = StateGraph(MessagesState)
    builder.add_node("note", note)
    builder.add_edge(START, "note")
    for expected in range(2):
        graph = builder.compile(store=QuipuStore(store.project))
        answer = graph.invoke({"messages": [HumanMessage("I like tea")]})
        assert answer["messages"][-1].content == f"I know {expected} things"
