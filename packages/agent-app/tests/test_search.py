"""Two ways lead from words to sessions; whichever is taken, the pages are the same."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from agent_app.store import search
from agent_core import Message, Session

if TYPE_CHECKING:
    from agent_app.store.base import Stored
    from agent_app.store.sql import SqlStore

WORDS = ("river", "lake", "sea", "pond", "Ärea", "lakeside", "se")
QUERIES = (*WORDS, "l", "river lake", "lake river", "area", "none", "talk 1", "sea river pond")
# How many messages are few, how many pages of sessions are looked through, and how many messages at most.
WAYS = {
    "from the messages": (10**9, 4, 10**9),
    "from the sessions": (-1, 10**6, 10**9),
    "from a few sessions": (-1, 1, 10**9),
    "from a few messages of sessions": (-1, 4, 3),
}


def text(choice: random.Random) -> str:
    return " ".join(choice.choices(WORDS, k=choice.randrange(1, 4)))


def fill(store: SqlStore, choice: random.Random, clock: Any) -> None:
    """Store conversations, branches of them, and branches of these; change some again."""
    stored: list[Stored] = []
    for number in range(40):
        clock.now += choice.randrange(2)  # some are changed in the same moment
        if stored and choice.random() < 0.5:
            source = choice.choice(stored)
            upto = choice.randrange(len(source.session.messages) + 1)
            history = source.session.history.prefix(upto).extend(
                [Message("user", text(choice)) for _ in range(choice.randrange(3))]
            )
            made = store.fork(source.session.session_id, Session(f"s{number}", history), upto)
            store.rename(made.session.session_id, f"Talk {number % 4}")
        else:
            messages = [Message("user", text(choice)) for _ in range(choice.randrange(6))]
            made = store.create(Session(f"s{number}", messages), title=choice.choice(["", text(choice)]))
        stored.append(made)
    for made in choice.sample(stored, 10):
        kept = made.session.history.prefix(choice.randrange(len(made.session.messages) + 1))
        store.save(Session(made.session.session_id, kept.append(Message("user", text(choice)))), made)
    store.delete(choice.choice(stored).session.session_id)


def pages(store: SqlStore, query: str, limit: int) -> list[Any]:
    found, cursor = [], None
    while True:
        page = store.list(query=query, cursor=cursor, limit=limit)
        found.append([(info.id, info.match) for info in page.sessions])
        cursor = page.cursor
        if cursor is None:
            return found


def contents(store: SqlStore) -> dict[str, tuple[str, list[str]]]:
    """The title of each session, and what was said in it."""
    return {
        one: (store.info(one).title, [str(message.content) for message in store.load(one).session.messages])
        for one in store
    }


def has(content: tuple[str, list[str]], query: str) -> bool:
    """Say the slow way whether a session has the words of a query, in a message or in its title."""
    words = [word.replace("ä", "a") for word in query.lower().split()]

    def fits(text: str) -> bool:
        said = text.lower().replace("ä", "a").split()
        return set(words[:-1]) <= set(said) and any(one.startswith(words[-1]) for one in said)

    title, said = content
    titled = title.lower().replace("ä", "a")
    return any(map(fits, said)) or all(word in titled for word in words)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_every_way_comes_to_the_same_pages(
    store: SqlStore, clock: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    fill(store, random.Random(seed), clock)
    known = contents(store)
    for query in QUERIES:
        for limit in (3, 50):
            by_way = {}
            for way, (few, window, most) in WAYS.items():
                monkeypatch.setattr(search, "_FEW", few)
                monkeypatch.setattr(search, "_WINDOW", window)
                monkeypatch.setattr(search, "_MOST", most)
                by_way[way] = pages(store, query, limit)

            first = by_way["from the messages"]
            assert all(found == first for found in by_way.values()), (query, limit)
            ids = [session_id for page in first for session_id, _ in page]
            assert sorted(ids) == sorted(one for one in known if has(known[one], query))
            assert all(len(page) == limit for page in first[:-1])


def test_a_word_that_every_message_has_is_looked_for_in_the_newest_sessions_alone(
    store: SqlStore, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_FEW", 5)
    monkeypatch.setattr(search, "_FROM_MESSAGES", "this statement is not run")
    for number in range(30):
        clock.now += 1
        store.create(Session(f"s{number}", [Message("user", f"hello {number} {n}") for n in range(3)]))

    assert [info.id for info in store.list(query="hello", limit=2).sessions] == ["s29", "s28"]
