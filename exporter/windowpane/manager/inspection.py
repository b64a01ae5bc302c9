"""What an agent can ask its manager, and what it can change at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windowpane.core.events import Candidate, Event
from windowpane.core.vocabulary import Component
from windowpane.exceptions import ConfigurationError
from windowpane.manager.budget import Ruling, check_claim
from windowpane.manager.plans.eviction import LISTED_CANDIDATES, plan_eviction
from windowpane.manager.plans.policies import Policy, policy_named
from windowpane.manager.session import ManagedSession
from windowpane.manager.status import Status
from windowpane.manager.status_report import full_status


class AdvisingSession(ManagedSession):
    """A managed session that answers questions about itself."""

    def status(self) -> Status:
        """The last measurement with budgets and forecasts; as a string, one line the agent can read."""
        with self._lock:
            return full_status(self._engine, audit_events=len(self._audit))

    def audit_trail(self) -> tuple[Event, ...]:
        """What was decided and why, oldest first; the last thousand. The store keeps them all."""
        with self._lock:
            self._engine.tracker.flush()
            return tuple(self._audit)

    def eviction_candidates(self, limit: int = LISTED_CANDIDATES) -> tuple[Candidate, ...]:
        """At most *limit* blocks that the policy would evict first, none evicted; none without a window size."""
        with self._lock:
            engine = self._engine
            if engine.limits is None or engine.settings.policy is None:
                return ()
            plan = plan_eviction(
                engine.snapshot(engine.limits),
                0,
                policy=engine.settings.policy,
                counter=engine.counter,
                listed=limit,
            )
            return plan.candidates

    def set_policy(self, policy: str | Policy, *, weights: Mapping[str, float] | None = None) -> None:
        """Evict by another policy from now on, by name, with other *weights*, or one of your own.

        Raises `ConfigurationError` for a name or weight that is none.
        """
        if not isinstance(policy, Policy):
            policy = policy_named(policy, weights=weights)
        elif weights is not None:
            raise ConfigurationError("weights", "the policy has weights of its own", expected="one of the two")
        with self._lock:
            self._engine.settings = replace(self._engine.settings, policy=policy)
            self._engine.fruitless_used = None

    def can_add(self, component: Component, tokens: int) -> Ruling:
        """Whether *tokens* more of a component fit; changes nothing.

        `blocked` where the window has no room for them, or, with `enforce="component"`, the component's budget
        has none; `warned` above its soft limit. Raises `ConfigurationError` for a component that is none.
        """
        with self._lock:
            return self._engine.can_add(component, tokens)

    def reserve(self, component: Component, tokens: int) -> Ruling:
        """As `can_add`, and unless it is blocked the tokens are set aside until `commit`."""
        with self._lock:
            engine = self._engine
            ruling = engine.can_add(component, tokens)
            if ruling.outcome != "blocked" and engine.budget is not None:
                engine.budget.hold(component, tokens)
            return ruling

    def commit(self, component: Component, tokens: int) -> None:
        """What *tokens* were reserved for has been added, or will not come. Raises as `can_add`."""
        check_claim(component, tokens)
        with self._lock:
            if self._engine.budget is not None:
                self._engine.budget.commit(component, tokens)
