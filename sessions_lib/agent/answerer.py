"""Who answers in a session: what its agent was given, then what the session remembers, then the environment.

A session that begins remembers what was given: address, model, wire, system prompt, temperature and effort, never the
key. So it
comes back with the session in the app, the terminal and the library.

Does not ask anybody anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sessions_lib.agent import demo_model, providers
from sessions_lib.agent.providers import Endpoint
from sessions_lib.agent.providers.endpoints import is_same_place
from sessions_lib.errors import NewerVersion, SessionError
from sessions_lib.store.session import Session

if TYPE_CHECKING:
    from openai import OpenAI


@dataclass
class Answerer:
    """What an agent was given, and the endpoint that came of it for the session it was last chosen for."""

    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    given_client: OpenAI | None = None
    given_system: str | None = None
    given_temperature: float | None = None
    given_wire: str | None = None
    given_effort: str | None = None
    endpoint: Endpoint = field(default_factory=Endpoint)
    _chosen: Endpoint | None = None
    _client: OpenAI | None = None
    _key_address: str | None = None  # where the key was to go when it was given
    _is_beginning: bool = False  # the first answer of the session is being waited for

    def __post_init__(self) -> None:
        providers.check_given(self.base_url, self.api_key)

    def choose(self, session: Session) -> None:
        """Settle who answers in ``session``: again, if it was told something else since.

        A key that was given goes to the address that this came to first, and to no other that the session names later.
        """
        chosen = self._choose(session, self.api_key)
        self._key_address = self._key_address or chosen.base_url
        if self.api_key and not is_same_place(chosen.base_url or "", self._key_address or ""):
            chosen = self._choose(session, None)
        if chosen != self._chosen:  # else the endpoint may know its model by now
            self._chosen = self.endpoint = chosen
            self._client = None if self.given_client is None else providers.watched(self.given_client)

    def _choose(self, session: Session, key: str | None) -> Endpoint:
        return providers.choose(
            self.model, self.base_url, key, self.given_client, wire=self.given_wire, session=session.meta
        )

    def check(self) -> None:
        """Refuse to go on without a key where one is needed, before anything is stored or sent."""
        if self.endpoint.lacks_key and self._client is None:
            raise providers.without_key(self.endpoint)

    @property
    def client(self) -> OpenAI:
        """The connection to the endpoint, made when first asked for."""
        if self._client is None:
            self._client = demo_model.client() if self.endpoint.is_demo else providers.client(self.endpoint)
        return self._client

    def system(self, session: Session) -> str | None:
        """The system prompt: the given one, else the session's."""
        found = self.given_system if self.given_system is not None else session.meta.get("system")
        return found if isinstance(found, str) else None

    def temperature(self, session: Session) -> float | None:
        """The temperature: the given one, else the session's, else the provider's default (``None``)."""
        found = self.given_temperature if self.given_temperature is not None else session.meta.get("temperature")
        return found if isinstance(found, int | float) and not isinstance(found, bool) else None

    def effort(self, session: Session) -> str | None:
        """How long it should think: what was given, else the session's, else the provider's default (``None``)."""
        found = self.given_effort if self.given_effort is not None else session.meta.get("effort")
        return found if isinstance(found, str) and found.strip() else None

    def remembered(self, session: Session) -> list[str]:
        """What this model refused before in the session (rules of ``refusals``): its next request starts right."""
        found = session.meta.get("refused")
        own = self.endpoint.settings
        if not isinstance(found, Mapping) or {key: found.get(key) for key in own} != own:
            return []
        listed = found.get("rules")
        return [rule for rule in listed if isinstance(rule, str)] if isinstance(listed, list) else []

    def has_adapted(self, session: Session, rules: Iterable[str]) -> None:
        """Have ``session`` remember what the model that answered refused."""
        now = sorted(rules)
        if now != sorted(self.remembered(session)):
            with contextlib.suppress(SessionError):  # the answer is stored; the next request finds out again
                session.update_meta({"refused": {**self.endpoint.settings, "rules": now} if now else None})

    def settings(self, session: Session) -> dict[str, Any]:
        """What answers in ``session``, as its metadata remembers it."""
        own = {
            "system": self.system(session),
            "temperature": self.temperature(session),
            "effort": self.effort(session),
            "wire": self.given_wire or session.meta.get("wire"),
        }
        return {**self.endpoint.settings, **{key: value for key, value in own.items() if value is not None}}

    def begin(self, session: Session) -> None:
        """Have ``session``, which has no message yet, remember what was given and it does not name itself."""
        self._is_beginning = True
        meta = session.meta
        given: dict[str, Any] = {}
        if (self.model or self.base_url or self.given_client) and not meta.get("base_url") and not meta.get("model"):
            given |= self.endpoint.settings
        if self.given_system and not meta.get("system"):
            given["system"] = self.given_system
        if self.given_temperature is not None and meta.get("temperature") is None:
            given["temperature"] = self.given_temperature
        if self.given_wire and not meta.get("wire"):
            given["wire"] = self.given_wire
        if self.given_effort and not meta.get("effort"):
            given["effort"] = self.given_effort
        if given:
            with contextlib.suppress(NewerVersion):  # that is read and never rewritten; its messages go on
                session.update_meta(given)

    def has_answered(self, session: Session) -> None:
        """Have ``session`` remember the model, if it began with whatever the server lists first."""
        settings = self.endpoint.settings
        if self._is_beginning and not session.meta.get("model") and session.meta.get("base_url"):
            with contextlib.suppress(SessionError):  # the answer is stored; the next run asks for the list again
                session.update_meta({"model": settings.get("model")})
        self._is_beginning = False
