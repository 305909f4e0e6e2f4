"""Which provider a configuration means, which models it offers, and how long that is remembered."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agent_core import (
    AgentCore,
    ModelDiscoveryCache,
    ModelNotFoundError,
    ModelSnapshot,
    NoProviderError,
    PluginError,
    PluginMutationError,
    ProviderNotFoundError,
)
from agent_core.testing import EchoProvider, ScriptedProvider

Dicts = list[dict[str, Any]]


class Listing(EchoProvider):
    """Counts how often it is asked for its models."""

    name = "listing"
    accepts_unlisted_models = False

    def __init__(self, *ids: str, fail: int = 0) -> None:
        self.asked = 0
        self._ids = ids
        self._fail = fail

    def get_models(self, config: dict[str, Any]) -> Dicts:
        self.asked += 1
        if self.asked <= self._fail:
            raise OSError("no network")
        return [{"id": name} for name in self._ids]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def core_with(provider: object, *features: object, cache: ModelDiscoveryCache | None = None) -> AgentCore:
    core = AgentCore(cache)
    core.register_provider(provider)
    for feature in features:
        core.register_feature(feature)
    return core


def changing(name: str, change: Callable[[Dicts], Dicts], **attributes: Any) -> object:
    """Return a feature or extension that changes the list of models."""

    def get_models(self: object, config: Any, models: Dicts) -> Dicts:
        return change(models)

    return type(name, (), {"name": name, "get_models": get_models, **attributes})()


def adding(name: str, **attributes: Any) -> object:
    return changing(name, lambda models: [*models, {"id": name, "after": len(models)}], **attributes)


def test_models_pass_through_the_provider_its_extensions_and_the_features_in_that_order() -> None:
    core = AgentCore()
    core.register_feature(adding("feature"))
    core.register_provider(EchoProvider, [adding("extension"), adding("second_extension")])
    core.register_feature(adding("second_feature", priority=1))

    assert core.resolve({}).models == [
        {"id": "echo", "name": "Echo"},
        {"id": "extension", "after": 1},
        {"id": "second_extension", "after": 2},
        {"id": "feature", "after": 3},
        {"id": "second_feature", "after": 4},
    ]


def test_a_plugin_may_change_or_remove_models() -> None:
    renaming = changing("renaming", lambda models: [{**model, "note": "seen"} for model in models])
    keeping = changing("keeping", lambda models: [model for model in models if model["id"] == "b"])
    core = core_with(Listing("a", "b"), renaming, keeping)

    assert core.resolve({"model": "b"}).models == [{"id": "b", "note": "seen"}]
    with pytest.raises(ModelNotFoundError):
        core.resolve({"model": "a"})


def test_a_plugin_that_is_off_before_tags_are_looked_at_has_no_say_in_models() -> None:
    core = core_with(EchoProvider, adding("unwanted"), adding("unlisted", default_enabled=False))
    config = {"disabled_plugins": ["unwanted"]}

    assert core.resolve(config).snapshot.ids() == ["echo"]
    assert core.resolve({**config, "enabled_plugins": ["unlisted"]}).snapshot.ids() == ["echo", "unlisted"]


def test_a_plugin_that_tags_switch_off_still_had_its_say_in_models() -> None:
    core = core_with(EchoProvider, adding("picky", required_tags=lambda self: ["never"]))

    assert core.get_plugins_for_config({})["features"] == []
    assert core.resolve({}).snapshot.ids() == ["echo", "picky"]


def test_a_plugin_without_the_hook_leaves_models_as_they_are() -> None:
    core = core_with(EchoProvider, type("Plain", (), {"name": "plain"}))

    assert core.resolve({}).snapshot.ids() == ["echo"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "must return a list of dicts, returned None"),
        ("gpt", "must return a list of dicts, returned str"),
        (["gpt"], "must return a list of dicts, returned str"),
        ([{"label": "no id"}], "must return models that have an id, a string"),
        ([{"id": 7}], "must return models that have an id, a string"),
    ],
)
@pytest.mark.parametrize("which", ["provider", "feature"])
def test_an_answer_that_is_no_list_of_models_is_refused_by_name(
    which: str, answer: Any, problem: str
) -> None:
    provider = type("Bad", (EchoProvider,), {"name": "bad", "get_models": lambda self, config: answer})
    core = (
        core_with(provider)
        if which == "provider"
        else core_with(EchoProvider, changing("bad", lambda _: answer))
    )

    with pytest.raises(PluginError) as caught:
        core.resolve({})
    assert (caught.value.plugin, caught.value.hook, caught.value.problem) == ("bad", "get_models", problem)


def test_a_model_may_be_known_by_its_name_alone() -> None:
    provider = type("Old", (EchoProvider,), {"get_models": lambda self, config: [{"name": "old"}]})
    core = core_with(provider)

    assert core.resolve({"model": "old"}).model == "old"


def test_the_models_that_a_plugin_is_given_are_only_lent() -> None:
    def spoil(models: Dicts) -> Dicts:
        models.append({"id": "mine"})
        return models

    with pytest.raises(PluginMutationError, match="'spoiling', hook 'get_models'"):
        core_with(EchoProvider, changing("spoiling", spoil)).resolve({})


def test_a_model_that_the_provider_does_not_list_is_refused_with_the_nearest_one() -> None:
    core = core_with(Listing("gemini-pro", "gemini-flash"))

    with pytest.raises(ModelNotFoundError) as caught:
        core.send_request(core.create_session(), {"model": "gemini-flsh"})
    assert str(caught.value) == (
        "Unknown model 'gemini-flsh' for provider 'listing': did you mean 'gemini-flash'?"
    )
    assert (caught.value.name, caught.value.known) == ("gemini-flsh", ("gemini-pro", "gemini-flash"))
    assert isinstance(caught.value, KeyError)
    with pytest.raises(ModelNotFoundError, match="known are 'gemini-pro', 'gemini-flash'"):
        core.resolve({"model": "xyz"})


def test_no_model_at_all_is_never_refused() -> None:
    assert core_with(Listing("a")).resolve({}).model is None


def test_a_provider_that_lists_nothing_takes_any_model() -> None:
    assert core_with(Listing()).resolve({"model": "anything"}).model == "anything"


@pytest.mark.parametrize("registered_as", ["class attribute", "object attribute"])
def test_a_provider_may_accept_models_that_it_does_not_list(registered_as: str) -> None:
    provider = Listing("a")
    if registered_as == "class attribute":
        provider = type("Open", (Listing,), {"accepts_unlisted_models": True})("a")
    else:
        provider.accepts_unlisted_models = True
    core = core_with(provider)

    assert core.resolve({"model": "b"}).model == "b"
    assert core.resolve({"model": "b"}).snapshot.ids() == ["a"]


def test_without_a_provider_there_is_nothing_to_ask() -> None:
    core = AgentCore()

    for ask in (core.resolve, core.get_plugins_for_config, core.explain_plugins):
        with pytest.raises(NoProviderError, match="register_provider"):
            ask({})
    with pytest.raises(RuntimeError):
        core.send_request(core.create_session(), {"provider": "echo"})


def test_the_only_provider_needs_no_naming() -> None:
    core = core_with(EchoProvider)

    assert core.resolve({}).provider.name == "echo"
    assert core.resolve({"provider": None}).provider.name == "echo"
    assert core.resolve({"provider": "echo"}).provider.name == "echo"


def test_of_several_providers_one_must_be_named() -> None:
    core = core_with(EchoProvider)
    core.register_provider(ScriptedProvider(name="scripted"))

    assert core.resolve({"provider": "echo"}).provider.name == "echo"
    assert core.resolve({"provider": "scripted"}).provider.name == "scripted"
    with pytest.raises(ProviderNotFoundError) as caught:
        core.resolve({})
    assert "config['provider'] must name one of several" in str(caught.value)
    assert caught.value.known == ("echo", "scripted")


@pytest.mark.parametrize("others", [0, 1])
def test_an_unknown_provider_is_refused_with_the_nearest_one(others: int) -> None:
    core = core_with(EchoProvider)
    for _ in range(others):
        core.register_provider(ScriptedProvider(name="scripted"))

    with pytest.raises(ProviderNotFoundError) as caught:
        core.send_request(core.create_session(), {"provider": "ecko"})
    assert str(caught.value) == "Unknown provider 'ecko' (config['provider']): did you mean 'echo'?"
    assert caught.value.name == "ecko"
    assert isinstance(caught.value, KeyError)


def test_a_provider_is_asked_for_its_models_once_per_configuration() -> None:
    provider = Listing("a")
    core = core_with(provider)
    session = core.add_message(core.create_session(), "user", "hello")

    for _ in range(3):
        core.send_request(session, {"model": "a"})
    assert provider.asked == 1

    core.send_request(session, {"model": "a", "temperature": 1})
    assert provider.asked == 2


def test_cores_that_share_a_cache_share_what_was_discovered() -> None:
    cache, provider = ModelDiscoveryCache(), Listing("a")
    first, second = core_with(provider, cache=cache), core_with(provider, cache=cache)
    first.resolve({})
    second.resolve({})

    assert provider.asked == 1
    assert first.resolve({}).snapshot is second.resolve({}).snapshot


def test_cores_without_a_shared_cache_ask_for_themselves() -> None:
    provider = Listing("a")
    core_with(provider).resolve({})
    core_with(provider).resolve({})

    assert provider.asked == 2


def test_classes_share_discoveries_and_different_objects_do_not() -> None:
    asked: list[object] = []

    class Counting(EchoProvider):
        def get_models(self, config: dict[str, Any]) -> Dicts:
            asked.append(self)
            return [{"id": "a"}]

    cache = ModelDiscoveryCache()
    for _ in range(2):
        core_with(Counting, cache=cache).resolve({})
    assert len(asked) == 1

    found = [core_with(Listing(name), cache=cache).resolve({}).snapshot.ids() for name in ("a", "b")]
    assert found == [["a"], ["b"]]


def test_cores_with_different_plugins_do_not_mix_up_their_models() -> None:
    cache, provider = ModelDiscoveryCache(), Listing("a")
    plain, extended = core_with(provider, cache=cache), core_with(provider, adding("b"), cache=cache)

    assert plain.resolve({}).snapshot.ids() == ["a"]
    assert extended.resolve({}).snapshot.ids() == ["a", "b"]


def test_a_cache_of_ones_own_is_used_even_while_it_is_empty() -> None:
    class Sized(ModelDiscoveryCache):
        def __len__(self) -> int:
            return len(self._found)

    cache = Sized()
    core_with(EchoProvider, cache=cache).resolve({})

    assert len(cache) == 1


def test_after_its_lifetime_a_discovery_is_made_again() -> None:
    clock, provider = Clock(), Listing("a")
    core = core_with(provider, cache=ModelDiscoveryCache(60, clock=clock))
    core.resolve({})
    clock.now = 59.9
    before = core.resolve({})
    assert provider.asked == 1

    clock.now = 60.0
    after = core.resolve({})
    assert provider.asked == 2
    assert after.snapshot is not before.snapshot


def test_without_a_lifetime_a_discovery_stays() -> None:
    clock, provider = Clock(), Listing("a")
    core = core_with(provider, cache=ModelDiscoveryCache(None, clock=clock))
    core.resolve({})
    clock.now = 1e9
    core.resolve({})

    assert provider.asked == 1


def test_the_oldest_of_too_many_discoveries_is_forgotten() -> None:
    provider = Listing("a")
    core = core_with(provider, cache=ModelDiscoveryCache(size=2))
    for seed in (1, 2, 3):
        core.resolve({"seed": seed})
    assert provider.asked == 3

    core.resolve({"seed": 3})
    core.resolve({"seed": 2})
    assert provider.asked == 3
    core.resolve({"seed": 1})
    assert provider.asked == 4


def test_a_cleared_cache_asks_again() -> None:
    cache, provider = ModelDiscoveryCache(), Listing("a")
    core = core_with(provider, cache=cache)
    core.resolve({})
    cache.clear()
    core.resolve({})

    assert provider.asked == 2


def test_a_discovery_that_failed_is_not_remembered() -> None:
    provider = Listing("a", fail=1)
    core = core_with(provider)

    with pytest.raises(PluginError, match="'listing', hook 'get_models': raised OSError: no network"):
        core.resolve({})
    assert core.resolve({}).snapshot.ids() == ["a"]
    assert provider.asked == 2


def test_a_snapshot_is_current_until_a_newer_one_takes_its_place() -> None:
    clock = Clock()
    cache = ModelDiscoveryCache(60, clock=clock)
    old, new = ModelSnapshot(), ModelSnapshot()
    assert cache.get("key", lambda: old) is old
    assert cache.is_current("key", old)
    assert not cache.is_current("key", new)

    clock.now = 60
    assert not cache.is_current("key", old)
    assert cache.get("key", lambda: new) is new
    assert cache.is_current("key", new)
    cache.clear()
    assert not cache.is_current("key", new)


def test_snapshots_with_the_same_models_are_still_two() -> None:
    assert ModelSnapshot() != ModelSnapshot()
    assert len({ModelSnapshot(), ModelSnapshot()}) == 2


def test_what_was_discovered_anew_counts_as_the_newest() -> None:
    clock = Clock()
    cache = ModelDiscoveryCache(60, size=2, clock=clock)
    cache.get("first", ModelSnapshot)
    clock.now = 30
    second = cache.get("second", ModelSnapshot)
    clock.now = 60
    first = cache.get("first", ModelSnapshot)
    cache.get("third", ModelSnapshot)

    assert cache.is_current("first", first)
    assert not cache.is_current("second", second)


class Waiting:
    """Answers the first who asks once *others* more threads are about to ask."""

    def __init__(self, others: int, *, error: BaseException | None = None) -> None:
        self.asked = 0
        self.snapshot = ModelSnapshot()
        self._others = threading.Semaphore(0)
        self._count = others
        self._error = error

    def come(self) -> None:
        self._others.release()

    def __call__(self) -> ModelSnapshot:
        self.asked += 1
        if self.asked == 1:
            for _ in range(self._count):
                assert self._others.acquire(timeout=60)
            if self._error is not None:
                raise self._error
        return self.snapshot


def in_threads(count: int, work: Callable[[], Any]) -> list[Any]:
    """Do the work in several threads; return what each returned or raised."""
    outcomes: list[Any] = []

    def run() -> None:
        try:
            outcomes.append(work())
        except BaseException as error:  # to be looked at
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def test_of_many_threads_that_want_the_same_models_one_asks() -> None:
    cache, discover = ModelDiscoveryCache(), Waiting(7)

    def ask() -> ModelSnapshot:
        discover.come()
        return cache.get("key", discover)

    assert in_threads(8, ask) == [discover.snapshot] * 8
    assert discover.asked == 1


def test_a_failure_is_that_of_all_who_waited_and_is_not_remembered() -> None:
    cache, discover = ModelDiscoveryCache(), Waiting(3, error=OSError("no network"))

    def ask() -> ModelSnapshot:
        discover.come()
        return cache.get("key", discover)

    outcomes = in_threads(4, ask)

    assert any(isinstance(one, OSError) for one in outcomes)
    assert all(isinstance(one, OSError) or one is discover.snapshot for one in outcomes)
    assert cache.get("key", discover) is discover.snapshot


def test_whoever_is_interrupted_leaves_the_asking_to_another() -> None:
    cache, discover = ModelDiscoveryCache(), Waiting(1, error=KeyboardInterrupt())

    def ask() -> ModelSnapshot:
        discover.come()
        return cache.get("key", discover)

    outcomes = in_threads(2, ask)

    assert discover.snapshot in outcomes
    assert len([one for one in outcomes if isinstance(one, KeyboardInterrupt)]) == 1


def test_a_plugin_that_asks_for_its_own_models_meanwhile_does_not_wait_for_itself() -> None:
    cache, snapshot = ModelDiscoveryCache(), ModelSnapshot()

    def discover() -> ModelSnapshot:
        return cache.get("key", lambda: snapshot)

    assert in_threads(1, lambda: cache.get("key", discover)) == [snapshot]


def test_requests_on_one_event_loop_ask_a_provider_once() -> None:
    provider = Listing("a")
    core = core_with(provider)
    session = core.add_message(core.create_session(), "user", "hello")

    async def ask() -> None:
        await asyncio.gather(*(core.send_request_async(session, {}) for _ in range(5)))

    asyncio.run(ask())

    assert provider.asked == 1
