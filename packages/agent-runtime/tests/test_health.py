"""Breakers: when a model is left alone, and when it is tried again."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from agent_runtime.errors import ModelUnavailable, SpecError
from agent_runtime.health import HEALTH, Admission, Health, HealthRegistry

KEY = "openai/gpt"


def fail(registry: HealthRegistry, times: int, now: float = 0.0, key: str = KEY) -> None:
    for _ in range(times):
        registry.failed(registry.admit(key, now), now)


def test_a_model_that_nobody_asked_is_healthy() -> None:
    registry = HealthRegistry()

    assert registry.snapshot() == {}
    assert registry.admit(KEY, 0.0).key == KEY
    assert registry.snapshot() == {KEY: Health("closed", 0, None)}


def test_five_failures_in_a_row_open_the_breaker_for_thirty_seconds() -> None:
    registry = HealthRegistry()

    fail(registry, 4, now=100.0)
    registry.abandoned(registry.admit(KEY, 100.0))
    fail(registry, 1, now=100.0)

    with pytest.raises(ModelUnavailable, match=r"'openai/gpt' .* 20 seconds") as failed:
        registry.admit(KEY, 110.0)
    assert failed.value.retry_after == 20.0
    assert registry.snapshot() == {KEY: Health("open", 5, 130.0)}


def test_an_answer_in_between_starts_the_count_anew() -> None:
    registry = HealthRegistry(failures=2)

    for _ in range(10):
        fail(registry, 1)
        registry.succeeded(registry.admit(KEY, 0.0))
    fail(registry, 1)

    assert registry.snapshot() == {KEY: Health("closed", 1, None)}


def test_each_model_has_a_breaker_of_its_own() -> None:
    registry = HealthRegistry(failures=1)

    fail(registry, 1)

    registry.admit("openai/other", 0.0)
    with pytest.raises(ModelUnavailable):
        registry.admit(KEY, 0.0)


def test_after_the_cool_down_one_ask_tries_and_its_success_closes_the_breaker() -> None:
    registry = HealthRegistry(failures=1, cool_down=30.0)
    fail(registry, 1)

    probe = registry.admit(KEY, 30.0)
    with pytest.raises(ModelUnavailable):
        registry.admit(KEY, 30.0)
    assert registry.snapshot()[KEY].state == "half_open"
    registry.succeeded(probe)

    assert registry.snapshot() == {KEY: Health("closed", 0, None)}
    assert registry.admit(KEY, 30.0) is not registry.admit(KEY, 30.0)


def test_one_failure_of_the_probe_opens_the_breaker_again() -> None:
    registry = HealthRegistry(failures=3, cool_down=30.0)
    fail(registry, 3)

    registry.failed(registry.admit(KEY, 30.0), 40.0)

    assert registry.snapshot() == {KEY: Health("open", 4, 70.0)}
    with pytest.raises(ModelUnavailable):
        registry.admit(KEY, 69.9)


def test_a_probe_that_is_abandoned_makes_room_for_the_next() -> None:
    registry = HealthRegistry(failures=1)
    fail(registry, 1)

    registry.abandoned(registry.admit(KEY, 30.0))

    assert registry.snapshot()[KEY].state == "half_open"
    registry.succeeded(registry.admit(KEY, 30.0))
    assert registry.snapshot()[KEY].state == "closed"


def test_a_probe_that_never_reports_does_not_block_the_model_for_ever() -> None:
    registry = HealthRegistry(failures=1, cool_down=30.0)
    fail(registry, 1)
    lost = registry.admit(KEY, 30.0)

    second = registry.admit(KEY, 60.0)
    registry.abandoned(lost)

    with pytest.raises(ModelUnavailable):
        registry.admit(KEY, 60.0)
    registry.succeeded(second)
    assert registry.snapshot()[KEY].state == "closed"


def test_what_began_before_the_breaker_opened_says_nothing_about_now() -> None:
    registry = HealthRegistry(failures=1)
    good, bad, given_up = (registry.admit(KEY, 0.0) for _ in range(3))
    fail(registry, 1)
    opened = registry.snapshot()

    registry.succeeded(good)
    registry.failed(bad, 20.0)
    registry.abandoned(given_up)

    assert registry.snapshot() == opened


def test_a_snapshot_does_not_change_afterwards() -> None:
    registry = HealthRegistry()
    before = registry.snapshot()

    fail(registry, 1)

    assert before == {}


@pytest.mark.parametrize(
    ("settings_", "field"),
    [({"failures": 0}, "failures"), ({"failures": 1.5}, "failures"), ({"cool_down": 0}, "cool_down")],
)
def test_settings_without_meaning_are_refused(settings_: dict[str, int], field: str) -> None:
    with pytest.raises(SpecError) as refused:
        HealthRegistry(**settings_)

    assert refused.value.field == field


def test_there_is_one_registry_for_the_process() -> None:
    assert isinstance(HEALTH, HealthRegistry)


def test_only_one_of_many_threads_gets_to_probe() -> None:
    registry, start = HealthRegistry(failures=1), threading.Barrier(8)
    fail(registry, 1)
    admitted, refused = list[Admission](), list[ModelUnavailable]()

    def try_it() -> None:
        start.wait()
        try:
            admitted.append(registry.admit(KEY, 30.0))
        except ModelUnavailable as error:
            refused.append(error)

    threads = [threading.Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(admitted), len(refused)) == (1, 7)


def test_no_failure_is_lost_among_threads() -> None:
    registry = HealthRegistry(failures=10_000)

    threads = [threading.Thread(target=fail, args=(registry, 250)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert registry.snapshot()[KEY].failures == 2000


@dataclass
class Model:
    """The same promises as a story: what was reported since the last change of state."""

    state: str = "closed"
    reports: str = ""
    opened_at: float = 0.0
    probing_since: float | None = None

    def turned_away(self, now: float, cool_down: float) -> bool:
        if self.state == "open":
            return now < self.opened_at + cool_down
        return self.probing_since is not None and now < self.probing_since + cool_down


class BreakerMachine(RuleBasedStateMachine):
    """Any order of asks, reports and waiting."""

    LIMIT, COOL_DOWN = 3, 30.0
    asks = Bundle("asks")

    def __init__(self) -> None:
        super().__init__()
        self.registry = HealthRegistry(failures=self.LIMIT, cool_down=self.COOL_DOWN)
        self.model = Model()
        self.now = 0.0
        self.current: list[Admission] = []
        self.prober: Admission | None = None

    @rule(seconds=st.sampled_from([0.0, 1.0, 14.5, 29.0, 30.0, 31.0, 90.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.model.turned_away(self.now, self.COOL_DOWN))
    @rule()
    def is_turned_away(self) -> None:
        with pytest.raises(ModelUnavailable) as refused:
            self.registry.admit(KEY, self.now)

        assert 0 < refused.value.retry_after <= self.COOL_DOWN

    @precondition(lambda self: not self.model.turned_away(self.now, self.COOL_DOWN))
    @rule(target=asks)
    def is_admitted(self) -> Admission:
        admission = self.registry.admit(KEY, self.now)
        if self.model.state != "closed":
            self.model.state, self.model.probing_since = "half_open", self.now
            self.prober = admission
        self.current.append(admission)
        return admission

    @rule(ask=consumes(asks))
    def succeeds(self, ask: Admission) -> None:
        self.registry.succeeded(ask)
        if ask in self.current:
            self.model.reports += "+"
            if self.model.state == "half_open":
                self._change("closed")

    @rule(ask=consumes(asks))
    def fails(self, ask: Admission) -> None:
        self.registry.failed(ask, self.now)
        if ask in self.current:
            self.model.reports += "-"
            too_many = self.model.reports.endswith("-" * self.LIMIT)
            if self.model.state == "half_open" or too_many:
                self.model.opened_at = self.now
                self._change("open")

    @rule(ask=consumes(asks))
    def is_abandoned(self, ask: Admission) -> None:
        self.registry.abandoned(ask)
        if ask is self.prober:
            self.model.probing_since = None

    @invariant()
    def tells_the_same(self) -> None:
        told = self.registry.snapshot().get(KEY, Health("closed", 0, None))
        assert told.state == self.model.state
        assert (told.until is not None and self.now < told.until) == self.model.turned_away(
            self.now, self.COOL_DOWN
        )

    def _change(self, state: str) -> None:
        self.model.state, self.model.reports, self.model.probing_since = state, "", None
        self.current, self.prober = [], None


BreakerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestBreaker = BreakerMachine.TestCase
