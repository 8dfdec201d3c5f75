"""Every session belongs to a user, and no face shows or touches another user's: neither psi-tool nor EQL nor GraphQL
nor the command line, whatever a token's scopes are.

The measure is what somebody can learn. Asking for what is another's is answered exactly as asking for what does not
exist; and nothing that comes back, asked for or not, has a trace of the other in it. What there is to be asked is taken
from the registries, so that an attribute, a mutation or a field that is added is held to the same.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLObjectType, build_schema
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from psi.agents import ToolFinished
from psi.core.commands import Caller
from psi.core.session import LOCAL_USER
from psi.edn import Keyword, dumps
from psi.faces import sockets
from psi.faces.auth import COOKIE
from psi.faces.graphql import sdl
from psi.faces.graphql.names import FIELDS
from psi.graph import Env, Mutation, Operation, Resolver, mutation
from psi.graph.attributes import Many, One
from psi.settings import Settings
from psi.store import Credentials
from resolvers import ATTRIBUTES, OPERATIONS
from tests.contract.faces import FACES, Face, Refusal, done
from tests.faces.serving import Answer, Served, serving
from tests.tool.cli import environment, start
from tool.declarations import ACTIONS

ALICE, BOB = "alice", "bob"
SCOPES = ("read", "write", "admin")
NOWHERE = {
    "session": "ses-00000000-0000-4000-8000-000000000000",
    "schedule": "sch-00000000-0000-4000-8000-000000000000",
    "run": "run-00000000-0000-4000-8000-000000000000",
    "job": "schedule/sch-00000000-0000-4000-8000-000000000000",
}
READ_ONLY = "this token may read but not write"


# -- two users, and what each of them has


@dataclass(frozen=True)
class Things:
    """What one user has. ``secret`` stands in every text of theirs."""

    user: str
    session: str  # idle, with a history
    busy: str  # a run is under way
    fresh: str  # made by a schedule
    pending: str
    queued: str
    delivered: str
    run: str
    active: str

    @property
    def secret(self) -> str:
        return f"{self.user}-secret"

    @property
    def named(self) -> dict[str, list[str]]:
        """Everything that can be named, by its kind."""
        schedules = [self.pending, self.queued, self.delivered]
        return {
            "session": [self.session, self.busy, self.fresh],
            "schedule": schedules,
            "run": [self.run, self.active],
            "job": [f"schedule/{each}" for each in schedules],
        }

    @property
    def traces(self) -> list[str]:
        return [self.secret, *(name for names in self.named.values() for name in names)]


@dataclass(frozen=True)
class House:
    served: Served
    credentials: Credentials
    tokens: Mapping[tuple[str, str], str]
    things: Mapping[str, Things]

    def token(self, user: str, scope: str = "write") -> str:
        return self.tokens[user, scope]

    def face(self, name: str, user: str, scope: str = "write") -> Face:
        return FACES[name](self.served, self.token(user, scope))

    async def post(self, path: str, body: Any, user: str, scope: str = "write", **headers: str) -> Answer:
        return await self.served.post(path, body, authorization=f"Bearer {self.token(user, scope)}", **headers)

    async def everything(self, user: str) -> Any:
        """All that a user has, seen from inside."""
        context = self.served.psi.service.context(Caller(user=user))
        sessions = list(context.sessions())
        assert sessions
        return (
            sessions,
            [list(context.schedules(each.id)) for each in sessions],
            [list(await context.messages(each.id)) for each in sessions],
            [list(await context.runs(each.id)) for each in sessions],
        )


async def act(served: Served, user: str, session: str | None, **request: Any) -> dict[str, Any]:
    """Done from inside, for a user."""
    keys = {name.replace("_", "-"): value for name, value in request.items()}
    answer = await served.psi.tool(keys, caller=Caller(session, user=user))
    assert answer["psi-tool/overall-status"] == "ok", answer
    found: dict[str, Any] = answer[f"psi-tool/{request['action']}"]
    return found


async def open_session(served: Served, user: str) -> str:
    config = {"system-prompt": f"{user}-secret prompt"}
    made = await act(served, user, None, action="session", op="create", name=f"{user}-secret", config=config)
    return str(made["session"]["session-id"])


async def schedule(served: Served, user: str, session: str, delay_ms: int = 1000, **more: Any) -> str:
    keys = {"kind": "message", "message": f"{user}-secret", "label": f"{user}-secret", "delay-ms": delay_ms, **more}
    made = await act(served, user, session, action="scheduler", op="create", **keys)
    return str(made["schedule"]["schedule-id"])


async def submit(served: Served, user: str, session: str, message: str) -> str:
    made = await act(served, user, session, action="session", op="submit", message=message)
    return str(made["run-id"])


async def furnish(served: Served, user: str) -> Things:
    session, busy = await open_session(served, user), await open_session(served, user)
    run = await submit(served, user, session, f"/say {user}-secret")
    active = await submit(served, user, busy, f"/think {user}-secret\n/wait 36000s")
    await served.clock.advance(0)
    config: Any = {"session-config": {"session-name": f"{user}-secret"}}
    delivered = await schedule(served, user, session, kind="session", **config)
    queued = await schedule(served, user, busy)
    pending = await schedule(served, user, session, 3_600_000)
    await served.clock.advance(1)
    made = served.psi.service.context().schedule(delivered)
    assert made is not None
    assert made.created_session is not None
    return Things(user, session, busy, made.created_session, pending, queued, delivered, run, active)


@asynccontextmanager
async def two_users(folder: Path, operations: Iterable[Operation] = (), **settings: Any) -> AsyncIterator[House]:
    # What is asked here in seconds is more than the usual limits allow a client.
    wide = Settings(auth=True, query_cost=10**9, rate=10**6, burst=10**6, **settings)
    with Credentials.open(folder) as credentials:
        now = datetime.now(UTC)
        tokens = {
            (user, scope): credentials.create_token(now=now, user=user, scopes=[scope]).text
            for user in (ALICE, BOB)
            for scope in SCOPES
        }
        async with serving(wide, credentials=credentials, operations=operations) as served:
            things = {user: await furnish(served, user) for user in (ALICE, BOB)}
            yield House(served, credentials, tokens, things)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with two_users(tmp_path) as found:
        yield found


def has_trace(text: str, of: Things, but: Iterable[str] = ()) -> str | None:
    """What in a text is another's, besides what was asked with."""
    for known in but:
        text = text.replace(known, "")
    return next((trace for trace in of.traces if trace in text), None)


async def are_as_if_not_there(
    send: Callable[[str], Awaitable[Answer]], theirs: Iterable[str], kind: str, of: Things
) -> Answer:
    """Whether naming what is another's is answered like naming what does not exist. That answer."""
    nothing = await send(NOWHERE[kind])
    for name in theirs:
        answer = await send(name)
        assert (answer.status, answer.text.replace(name, NOWHERE[kind])) == (nothing.status, nothing.text)
        assert has_trace(answer.text, of, [name]) is None
    return nothing


async def finds_something(send: Callable[[str], Awaitable[Answer]], own: Things) -> bool:
    """Whether the same question has another answer where it may be asked; otherwise it would show nothing."""
    for kind, names in own.named.items():
        nothing = await send(NOWHERE[kind])
        for name in names:
            if (await send(name)).text.replace(name, NOWHERE[kind]) != nothing.text:
                return True
    return False


# -- every face, by the words that all of them have


BY_TOKEN = pytest.mark.parametrize("name", FACES)


def by_scope(*scopes: str) -> pytest.MarkDecorator:
    """Every face with a token of each scope; the command line, where each word is a process, with the first."""
    pairs = [(name, scope) for name in FACES for scope in scopes[: 1 if name == "command line" else None]]
    return pytest.mark.parametrize(("name", "scope"), pairs)


def shown(answer: Any, theirs: str, nowhere: str) -> Any:
    return repr(answer).replace(theirs, nowhere)


def words(face: Face, session: str) -> dict[str, Callable[[], Awaitable[Any]]]:
    """Everything that a face can be told about a session."""
    message = {"kind": "message", "message": "x", "delay_ms": 1000}
    return {
        "create": lambda: face.create(session, **message),
        "create for": lambda: face.create(None, **message, session_id=session),
        "list": lambda: face.scheduled(session),
        "cancel": lambda: face.cancel(session, NOWHERE["schedule"]),
        "submit": lambda: face.submit(session, "x"),
        "stop": lambda: face.stop(session),
        "close": lambda: face.close(session),
    }


@by_scope("admin", "write")
async def test_on_no_face_is_another_users_session_there(house: House, name: str, scope: str) -> None:
    face = house.face(name, BOB, scope)
    before = await house.everything(ALICE)
    theirs = house.things[ALICE]
    for session in theirs.named["session"][: 1 if name == "command line" else None]:
        of_nobody = words(face, NOWHERE["session"])
        for word, say in words(face, session).items():
            answer = await say()
            assert isinstance(answer, Refusal), word
            assert answer.code == "session/not-found"
            assert shown(answer, session, NOWHERE["session"]) == repr(await of_nobody[word]())
    own = house.things[BOB]
    for each in theirs.named["schedule"][: 1 if name == "command line" else None]:
        answer = await face.cancel(own.session, each)
        assert isinstance(answer, Refusal)
        assert answer.code == "scheduler/not-found"
        nowhere = NOWHERE["schedule"]
        assert shown(answer, each, nowhere) == repr(await face.cancel(own.session, nowhere))
        assert await face.look(each) is None
    assert await house.everything(ALICE) == before


@by_scope(*SCOPES)
async def test_on_every_face_lists_and_counts_hold_what_is_ones_own(house: House, name: str, scope: str) -> None:
    face = house.face(name, BOB, scope)
    own, theirs = house.things[BOB], house.things[ALICE]
    assert {each.id for each in await face.sessions()} == {own.session, own.busy, own.fresh}
    counts = "[:psi.system/session-count :psi.system/schedule-count :psi.system/active-run-count]"
    assert done(await face.ask(None, counts)) == {
        "psi.system/session-count": 3,
        "psi.system/schedule-count": 2,
        "psi.system/active-run-count": 1,
    }
    assert [each.id for each in done(await face.scheduled(own.session))] == [own.pending]
    assert has_trace(repr(await face.sessions()), theirs) is None


@BY_TOKEN
async def test_on_every_face_a_token_that_may_read_changes_nothing_and_is_told_so(house: House, name: str) -> None:
    face = house.face(name, BOB, "read")
    own = house.things[BOB]
    before = await house.everything(BOB)
    refusals = [
        await face.open("x"),
        await face.create(own.session, kind="message", message="x", delay_ms=1000),
        await face.cancel(own.session, own.pending),
        await face.submit(own.session, "x"),
        await face.stop(own.busy),
        await face.close(own.session),
    ]
    for refusal in refusals:
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.message) == ("auth/read-only", READ_ONLY)
    assert await house.everything(BOB) == before
    assert done(await face.ask(own.session, "[:psi.scheduler/pending-count]")) == {"psi.scheduler/pending-count": 1}


async def test_a_token_that_may_read_calls_no_mutation_whosoever_added_it(tmp_path: Path) -> None:
    called: list[str] = []

    @mutation("house/paint", params=["colour"], output=["house/colour"])
    def paint(env: Env, params: Mapping[str, Any]) -> Any:
        called.append(params["colour"])
        return {"house/colour": params["colour"]}

    async with two_users(tmp_path, operations=[paint]) as house:
        call = '[(house/paint {:colour "red"})]'
        requests: list[tuple[str, Any]] = [
            ("/psi-tool", {"action": "mutate", "mutation": "house/paint", "params": {"colour": "red"}}),
            ("/psi-tool", {"action": "query", "query": call}),
            ("/eql", {"query": call}),
            ("/eql", {"query": f"[{{:psi.system/sessions {call}}}]"}),
            ("/eql", {"query": call, "strict": True}),
            ("/graphql", {"query": "query($q: EQL!) { eql(query: $q) }", "variables": {"q": call}}),
        ]
        for path, request in requests:
            refused = await house.post(path, request, BOB, "read")
            assert "red" not in refused.text.replace(READ_ONLY, "")
            assert "auth/read-only" in refused.text or "graphql/eql-mutation" in refused.text
        assert called == []
        assert (await house.post("/eql", {"query": call}, BOB, "write")).json() == {
            "house/paint": {"house/colour": "red"}
        }
        assert called == ["red"]


async def test_what_a_user_creates_belongs_to_that_user(house: House) -> None:
    for name in FACES:
        opened = done(await house.face(name, BOB, "admin").open(f"bob's, over {name}"))
        found = house.served.psi.service.session(opened.id)
        assert found is not None
        assert found.owner == BOB
        made = await house.face(name, ALICE).look(opened.id)
        assert made is None
    assert len((await house.everything(ALICE))[0]) == 3


# -- psi-tool: every request that can name something


SAMPLES: Mapping[str, Any] = {
    "kind": "message",
    "message": "x",
    "delay-ms": 1000,
    "name": "x",
    "mutation": "psi.agent-session/stop",
    "query": "[:psi.scheduler/pending-count]",
}
_NAMES = {"session-id": "session", "schedule-id": "schedule"}


def _filled(keys: Iterable[str], **more: Any) -> dict[str, Any]:
    return {key: SAMPLES[key] for key in keys if key in SAMPLES} | {
        name.replace("_", "-"): value for name, value in more.items()
    }


def tool_requests() -> Iterator[tuple[str, str, Mapping[str, Any], str | None]]:
    """About, the kind of what is named, the request, and the key that names it; None: it is the invoking session."""
    for action in ACTIONS:
        for op in action.ops or (None,):
            keys = [key.name for key in (op.keys if op else action.keys)]
            request = {"action": action.name, **({"op": op.name} if op else {}), **_filled(keys)}
            about = f"{action.name} {op.name}" if op else action.name
            yield f"{about} from", "session", {**request, **_cancel(keys)}, None
            for key in set(keys) & set(_NAMES):
                yield f"{about} {key}", _NAMES[key], {**request, **_cancel(keys)}, key
    for each in OPERATIONS:
        if isinstance(each, Mutation):
            for key in set(each.params) & set(_NAMES):
                params = {**_filled(each.params), **_cancel(each.params)}
                request = {"action": "mutate", "mutation": each.name, "params": params}
                yield f"{each.name} {key}", _NAMES[key], request, key


def _cancel(keys: Iterable[str]) -> dict[str, str]:
    return {"schedule-id": NOWHERE["schedule"]} if "schedule-id" in keys else {}


TOOL_REQUESTS = {about: (kind, request, key) for about, kind, request, key in tool_requests()}


async def test_psi_tool_answers_for_another_users_things_as_for_none(house: House) -> None:
    own, theirs = house.things[BOB], house.things[ALICE]
    before = await house.everything(ALICE)
    for scope in SCOPES:
        for kind, request, key in TOOL_REQUESTS.values():

            async def send(name: str, request: Any = request, key: Any = key, scope: str = scope) -> Answer:
                if key is None:
                    return await house.post("/psi-tool", request, BOB, scope, psi_session=name)
                if "params" in request:
                    request = {**request, "params": {**request["params"], key: name}}
                else:
                    request = {**request, key: name}
                return await house.post("/psi-tool", request, BOB, scope, psi_session=own.session)

            answer = await are_as_if_not_there(send, theirs.named[kind], kind, theirs)
            assert answer.json()["psi-tool/overall-status"] == "error", (request, key)
    assert await house.everything(ALICE) == before


def test_the_requests_are_those_that_there_are() -> None:
    assert {"scheduler create session-id", "scheduler cancel schedule-id", "session close from"} <= set(TOOL_REQUESTS)
    assert {"psi.scheduler/cancel schedule-id", "psi.agent-session/close session-id"} <= set(TOOL_REQUESTS)


# -- EQL: every attribute, from everything that leads anywhere


# What the graph says about itself is the same for everybody, and large.
_ABOUT_ITSELF = ("psi.graph/", "psi.resolver/", "psi.attr/")
ATTRIBUTE_NAMES = [name for name in ATTRIBUTES if not name.startswith(_ABOUT_ITSELF)]
JOINS = {name for name in ATTRIBUTE_NAMES if isinstance(ATTRIBUTES[name].type, One | Many)}
LEAVES = " ".join(f":{name}" for name in ATTRIBUTE_NAMES if name not in JOINS)
WHOLE = f"{LEAVES} {' '.join(f'{{:{name} [{LEAVES}]}}' for name in sorted(JOINS))}"

# Where a query can start from: whatever a resolver needs.
SEEDS = sorted({need.attribute for each in OPERATIONS if isinstance(each, Resolver) for need in each.inputs})


def test_queries_start_from_every_identity_that_there_is() -> None:
    assert {"psi.agent-session/session-id", "psi.scheduler/schedule-id", "psi.run/id"} <= set(SEEDS)
    assert {"psi.scheduler/origin-session-id", "psi.run/session-id", "psi.session-info/id"} <= set(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_attribute_of_what_is_anothers_can_be_had(house: House, seed: str) -> None:
    own, theirs = house.things[BOB], house.things[ALICE]

    async def by_entity(name: str) -> Answer:
        return await house.post("/eql", {"query": f"[{WHOLE}]", "entity": {seed: name}}, BOB, "admin")

    async def by_ident(name: str) -> Answer:
        return await house.post("/eql", {"query": f"[{{[:{seed} {dumps(name)}] [{WHOLE}]}}]"}, BOB, "admin")

    for kind, names in theirs.named.items():
        for send, which in ((by_entity, names), (by_ident, names[:1])):
            answer = await are_as_if_not_there(send, which, kind, theirs)
            assert answer.status == 200
    assert await finds_something(by_entity, own)


async def test_each_attribute_by_itself_is_refused_as_if_there_were_nothing(house: House) -> None:
    """Strictly, and from inside, because there are many: what one query finds must not hide what another would."""
    own, theirs = house.things[BOB], house.things[ALICE]
    bob = Caller(own.session, user=BOB)

    async def told(attribute: str, seed: str, name: str) -> str:
        query = (
            f"[{{[:{seed} {dumps(name)}] [{{:{attribute} [*]}}]}}]"
            if attribute in JOINS
            else (f"[{{[:{seed} {dumps(name)}] [:{attribute}]}}]")
        )
        try:
            return repr(await house.served.psi.service.query(query, bob))
        except Exception as error:  # noqa: BLE001 – whatever it says, it has to say the same of what does not exist
            return f"{type(error).__name__} {error}"

    for seed in SEEDS:
        kind = {"psi.scheduler/schedule-id": "schedule", "psi.run/id": "run"}.get(seed, "session")
        name = theirs.named[kind][0]
        for attribute in ATTRIBUTE_NAMES:
            answer = await told(attribute, seed, name)
            assert answer.replace(name, NOWHERE[kind]) == await told(attribute, seed, NOWHERE[kind])
            assert has_trace(answer, theirs, [name]) is None


async def test_the_root_of_another_users_session_is_no_root(house: House) -> None:
    theirs = house.things[ALICE]
    for more in ({}, {"strict": True}, {"explain": True}):

        async def send(name: str, more: Any = more) -> Answer:
            return await house.post("/eql", {"query": f"[{WHOLE}]", **more}, BOB, psi_session=name)

        answer = await are_as_if_not_there(send, theirs.named["session"], "session", theirs)
        assert answer.status == 404


async def test_everything_that_can_be_asked_without_a_name_is_ones_own(house: House) -> None:
    own, theirs = house.things[BOB], house.things[ALICE]
    deep = f"[{WHOLE} {{:psi.system/sessions [{WHOLE}]}} {{:psi.agent-session/context-session-summaries [{WHOLE}]}}]"
    for session in (None, own.session):
        headers = {} if session is None else {"psi_session": session}
        answer = await house.post("/eql", {"query": deep}, BOB, "admin", **headers)
        assert answer.status == 200
        assert has_trace(answer.text, theirs) is None
        assert own.secret in answer.text


async def test_no_mutation_in_eql_touches_what_is_anothers(house: House) -> None:
    own, theirs = house.things[BOB], house.things[ALICE]
    before = await house.everything(ALICE)
    tried = 0
    for called in (each for each in OPERATIONS if isinstance(each, Mutation)):
        for key in set(called.params) & set(_NAMES):
            kind = _NAMES[key]
            for scope in SCOPES:
                for strict in (True, False):

                    async def send(
                        name: str, called: Mutation = called, key: str = key, strict: bool = strict, to: str = scope
                    ) -> Answer:
                        params = {**_filled(called.params), **_cancel(called.params), key: name}
                        written = dumps({Keyword(each): value for each, value in params.items()})
                        query = f"[{{({called.name} {written}) [{LEAVES}]}}]"
                        return await house.post(
                            "/eql", {"query": query, "strict": strict}, BOB, to, psi_session=own.session
                        )

                    answer = await are_as_if_not_there(send, theirs.named[kind], kind, theirs)
                    expected = "auth/read-only" if scope == "read" else "not-found"
                    assert expected in answer.text
                    tried += 1
    assert tried >= 6 * 6
    assert await house.everything(ALICE) == before


# -- GraphQL: every root field


SCHEMA = build_schema(sdl())


def fields(of: str, depth: int = 1) -> str:
    """Every field of a type, and of what it leads to."""
    found = []
    for field in FIELDS[of].values():
        if field.leads_to is None:
            found.append(field.name)
        elif depth:
            found.append(f"{field.name} {{ {fields(field.leads_to, depth - 1)} }}")
    return " ".join(found)


# @ stands for what is named; JSON keys that are no GraphQL names go in as a variable.
BY_ID: Mapping[str, tuple[str, str]] = {
    "session": ("session", f'session(id: "@") {{ {fields("Session")} }}'),
    "sessions": ("session", f'sessions(after: "@") {{ {fields("Session")} }}'),
    "schedule": ("schedule", f'schedule(id: "@") {{ {fields("Schedule")} }}'),
    "schedules": ("session", f'schedules(sessionId: "@") {{ {fields("Schedule")} }}'),
    "run": ("run", f'run(id: "@") {{ {fields("Run")} }}'),
    "runs": ("session", f'runs(sessionId: "@") {{ {fields("Run")} }}'),
    "eql": ("session", "eql(query: $query, entity: $entity)"),
}
OF_ALL: Mapping[str, str] = {
    "sessions": f"sessions {{ {fields('Session')} }}",
    "schedules": f"schedules {{ {fields('Schedule')} }}",
    "runs": f"runs {{ {fields('Run')} }}",
    "system": f"system {{ {fields('System')} }}",
    "eql": "eql(query: $query)",
}
_PAYLOAD = "problems { path message code }"
_LATER = 'kind: MESSAGE, message: "x", delayMs: 1000'
MUTATIONS: Mapping[str, tuple[str, str]] = {
    "createSchedule": ("session", f'createSchedule(sessionId: "@", {_LATER}) {{ schedule {{ label }} {_PAYLOAD} }}'),
    "cancelSchedule": ("schedule", f'cancelSchedule(scheduleId: "@") {{ schedule {{ label }} {_PAYLOAD} }}'),
    "closeSession": ("session", f'closeSession(sessionId: "@") {{ closedSessionId {_PAYLOAD} }}'),
    "submitPrompt": ("session", f'submitPrompt(sessionId: "@", message: "x") {{ session {{ phase }} {_PAYLOAD} }}'),
    "stopRun": ("session", f'stopRun(sessionId: "@") {{ session {{ phase }} {_PAYLOAD} }}'),
}
SUBSCRIPTIONS: Mapping[str, tuple[str, str]] = {
    **BY_ID,
    "live": ("session", "live(query: $query, entity: $entity)"),
    "scheduleChanged": ("session", f'scheduleChanged(sessionId: "@") {{ {fields("Schedule")} }}'),
    "sessionEvents": ("session", 'sessionEvents(sessionId: "@") { seq type sessionId at data }'),
    "sessionEvents after": ("session", 'sessionEvents(sessionId: "@", after: 0) { seq type sessionId at data }'),
    "runEvents": ("run", 'runEvents(runId: "@") { runId seq type data }'),
    "runEvents after": ("run", 'runEvents(runId: "@", after: 1) { runId seq type data }'),
}
FOLLOWING: Mapping[str, str] = {
    **OF_ALL,
    "live": "live(query: $query)",
    "scheduleChanged": f"scheduleChanged {{ {fields('Schedule')} }}",
    "sessionEvents": "sessionEvents { seq type sessionId at data }",
    "sessionEvents after": "sessionEvents(after: 0) { seq type sessionId at data }",
}


def _roots(kind: GraphQLObjectType | None) -> set[str]:
    assert kind is not None
    return set(kind.fields)


def test_every_root_field_is_looked_at() -> None:
    about_nobody = {"graph", "validateSessionConfig", "system"}
    assert {*BY_ID, *OF_ALL, *about_nobody} == _roots(SCHEMA.query_type)
    assert {*MUTATIONS, "createSession"} == _roots(SCHEMA.mutation_type)
    looked_at = {name.partition(" ")[0] for name in (*SUBSCRIPTIONS, *FOLLOWING)}
    assert looked_at | {"graph"} == _roots(SCHEMA.subscription_type)


SEED = "psi.agent-session/session-id"


def operation(kind: str, text: str, name: str = "") -> dict[str, Any]:
    """A request for one root field."""
    variables: dict[str, Any] = {}
    if "$query" in text:
        variables["query"] = f"[{WHOLE}]"
    if "$entity" in text:
        variables["entity"] = {SEED: name}
    declared = {"query": "EQL!", "entity": "JSON"}
    given = f"({', '.join(f'${each}: {declared[each]}' for each in variables)})" if variables else ""
    return {"query": f"{kind} {given} {{ {text.replace('@', name)} }}", "variables": variables}


@pytest.mark.parametrize("field", BY_ID)
async def test_no_query_of_graphql_finds_what_is_anothers(house: House, field: str) -> None:
    kind, text = BY_ID[field]
    theirs = house.things[ALICE]
    for scope in SCOPES:

        async def send(name: str, scope: str = scope) -> Answer:
            return await house.post("/graphql", operation("query", text, name), BOB, scope)

        await are_as_if_not_there(send, theirs.named[kind], kind, theirs)
        assert await finds_something(send, house.things[BOB])


@pytest.mark.parametrize("field", OF_ALL)
async def test_no_list_of_graphql_has_what_is_anothers(house: House, field: str) -> None:
    theirs = house.things[ALICE]
    for headers in ({}, {"psi_session": house.things[BOB].session}):
        answer = await house.post("/graphql", operation("query", OF_ALL[field]), BOB, "admin", **headers)
        assert "errors" not in answer.json(), answer.json()["errors"]
        assert has_trace(answer.text, theirs) is None
        assert any(trace in answer.text for trace in house.things[BOB].traces)


@pytest.mark.parametrize("field", OF_ALL)
async def test_graphql_from_another_users_session_is_as_from_none(house: House, field: str) -> None:
    theirs = house.things[ALICE]

    async def send(name: str) -> Answer:
        return await house.post("/graphql", operation("query", OF_ALL[field]), BOB, psi_session=name)

    await are_as_if_not_there(send, theirs.named["session"], "session", theirs)


@pytest.mark.parametrize("field", MUTATIONS)
async def test_no_mutation_of_graphql_touches_what_is_anothers(house: House, field: str) -> None:
    kind, text = MUTATIONS[field]
    own, theirs = house.things[BOB], house.things[ALICE]
    before = await house.everything(ALICE)
    for scope in SCOPES:

        async def send(name: str, scope: str = scope) -> Answer:
            asked = operation("mutation", text, name)
            return await house.post("/graphql", asked, BOB, scope, psi_session=own.session)

        answer = await are_as_if_not_there(send, theirs.named[kind], kind, theirs)
        (problem,) = answer.json()["data"][field]["problems"]
        assert problem["code"] == ("auth/read-only" if scope == "read" else f"{_room(kind)}/not-found")
    assert await house.everything(ALICE) == before


def _room(kind: str) -> str:
    return {"session": "session", "schedule": "scheduler"}[kind]


# -- GraphQL: subscriptions


class Follower:
    """One socket. Keeps what comes for each subscription."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.came: list[dict[str, Any]] = []
        self._pings = 0

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def _receive(self) -> dict[str, Any]:
        async with asyncio.timeout(10):
            found: dict[str, Any] = json.loads(await self.socket.recv())
            return found

    async def subscribe(self, name: str, request: Mapping[str, Any]) -> None:
        await self.send(id=name, type="subscribe", payload=request)

    async def first(self, name: str) -> dict[str, Any]:
        """The first message of a subscription."""
        while not any(each["id"] == name for each in self.came):
            self.came.append(await self._receive())
        return next(each for each in self.came if each["id"] == name)

    async def settle(self) -> list[dict[str, Any]]:
        """What has come since the last time. Answers to pings overtake the rest, hence more than one."""
        for _ in range(3):
            self._pings += 1
            await self.send(type="ping", payload={"n": self._pings})
            while (message := await self._receive())["type"] != "pong":
                self.came.append(message)
        found, self.came = self.came, []
        return found

    async def closed(self) -> int:
        async with asyncio.timeout(10):
            await self.socket.wait_closed()
        assert self.socket.close_code is not None
        return self.socket.close_code


@asynccontextmanager
async def following(house: House, user: str, scope: str = "read", **payload: Any) -> AsyncIterator[Follower]:
    url = f"{house.served.ws_url}/graphql"
    async with connect(url, subprotocols=[Subprotocol("graphql-transport-ws")], max_size=2**25) as socket:
        follower = Follower(socket)
        await follower.send(type="connection_init", payload={"token": house.token(user, scope), **payload})
        assert await follower._receive() == {"type": "connection_ack"}
        yield follower


@pytest.mark.parametrize("scope", ["read", "admin"])
async def test_no_subscription_finds_what_is_anothers(house: House, scope: str) -> None:
    own, theirs = house.things[BOB], house.things[ALICE]
    async with following(house, BOB, scope) as follower:
        for field, (kind, text) in SUBSCRIPTIONS.items():
            for name in theirs.named[kind]:
                told = []
                for each in (name, NOWHERE[kind]):
                    label = f"{field} {each}"
                    await follower.subscribe(label, operation("subscription", text, each))
                    message = await follower.first(label)
                    told.append(json.dumps({**message, "id": ""}).replace(name, NOWHERE[kind]))
                    assert has_trace(json.dumps(message), theirs, [name]) is None
                    if message["type"] == "next":
                        await follower.send(id=label, type="complete")
                assert told[0] == told[1], field
                if field.partition(" ")[0] in ("scheduleChanged", "sessionEvents", "runEvents"):
                    assert '"error"' in told[0]
        # The same subscriptions tell plenty where they may.
        await follower.subscribe("own", operation("subscription", SUBSCRIPTIONS["sessionEvents after"][1], own.session))
        assert (await follower.first("own"))["type"] == "next"
        await follower.subscribe("run", operation("subscription", SUBSCRIPTIONS["runEvents"][1], own.active))
        assert (await follower.first("run"))["type"] == "next"


# Without what is different at every look: the clock, and the number of the newest event, which counts everybody's.
_CHANGING = {"clock", "counters", "uptimeMs"}
_OF_SYSTEM = " ".join(each.name for each in FIELDS["System"].values() if each.leads_to is None)
_QUIET = {
    **FOLLOWING,
    "system": f"system {{ {' '.join(each for each in _OF_SYSTEM.split() if each not in _CHANGING)} }}",
}


async def busy_hour(house: House, user: str) -> Things:
    """One user does all there is to do."""
    served = house.served
    known = house.things[user]
    session = await open_session(served, user)
    kept = await schedule(served, user, session, 3_600_000)
    gone = await schedule(served, user, session)
    await act(served, user, session, action="scheduler", op="cancel", schedule_id=gone)
    run = await submit(served, user, session, f"/say {user}-secret\n/think {user}-secret")
    await served.clock.advance(1)
    closing = await open_session(served, user)
    await act(served, user, closing, action="session", op="close")
    await served.clock.advance(1)
    return Things(user, session, closing, known.fresh, kept, gone, known.delivered, run, known.active)


async def test_nothing_that_another_does_is_heard(house: House) -> None:
    for session in (None, house.things[BOB].session):
        payload = {} if session is None else {"Psi-Session": session}
        async with following(house, BOB, "admin", **payload) as follower:
            for field, text in _QUIET.items():
                text = text.replace("$query", json.dumps("[{:psi.system/sessions [*]} :psi.system/session-count]"))
                await follower.subscribe(field, operation("subscription", text))
            await house.served.clock.advance(1)
            began = await follower.settle()
            assert all(each["type"] == "next" for each in began)
            assert has_trace(json.dumps(began), house.things[ALICE]) is None
            live = {"sessions", "schedules", "runs", "system", "eql", "live", "sessionEvents after"}
            assert {each["id"] for each in began} == live

            theirs = await busy_hour(house, ALICE)
            assert await follower.settle() == []

            await busy_hour(house, BOB)
            heard = await follower.settle()
            assert has_trace(json.dumps(heard), theirs) is None
            if session is None:
                assert {each["id"] for each in heard} == set(_QUIET)


async def test_what_is_remembered_for_those_who_come_back_is_their_own(house: House) -> None:
    theirs = await busy_hour(house, ALICE)
    async with following(house, BOB) as follower:
        for after in (0, 1, 10, house.served.psi.service.seq - 1):
            text = f"sessionEvents(after: {after}) {{ seq type sessionId at data }}"
            await follower.subscribe(f"after {after}", operation("subscription", text))
        heard = await follower.settle()
    own = {*house.things[BOB].named["session"]}
    assert heard
    assert {each["payload"]["data"]["sessionEvents"]["sessionId"] for each in heard} <= own
    assert has_trace(json.dumps(heard), theirs) is None
    assert has_trace(json.dumps(heard), house.things[ALICE]) is None


async def test_two_users_who_ask_the_same_do_not_share_the_answer(house: House) -> None:
    async with following(house, ALICE) as alices, following(house, BOB) as bobs:
        for field, text in FOLLOWING.items():
            for follower in (alices, bobs):
                await follower.subscribe(field, operation("subscription", text))
        await house.served.clock.advance(1)
        await busy_hour(house, ALICE)
        await busy_hour(house, BOB)
        for user, other, follower in ((ALICE, BOB, alices), (BOB, ALICE, bobs)):
            heard = await follower.settle()
            assert {each["id"] for each in heard} == set(FOLLOWING)
            assert has_trace(json.dumps(heard), house.things[other]) is None
            assert f"{user}-secret" in json.dumps(heard)


async def test_mutations_over_a_socket_are_bound_as_those_over_http(house: House) -> None:
    before = await house.everything(ALICE), await house.everything(BOB)
    for scope, code in (("read", "auth/read-only"), ("admin", "session/not-found")):
        async with following(house, BOB, scope) as follower:
            text = MUTATIONS["closeSession"][1]
            await follower.subscribe("close", operation("mutation", text, house.things[ALICE].session))
            told = await follower.first("close")
            assert told["payload"]["data"]["closeSession"]["problems"][0]["code"] == code
    assert (await house.everything(ALICE), await house.everything(BOB)) == before


# -- the command line, watching


async def test_the_command_line_watches_what_is_ones_own(house: House) -> None:
    env = environment(PSI_URL=house.served.url, PSI_TOKEN=house.token(BOB, "read"))
    process = await start("watch", "--json", env=env)
    assert process.stdout is not None
    lines: list[str] = []
    try:
        async with asyncio.timeout(20):
            reading = asyncio.ensure_future(process.stdout.readline())
            while not reading.done():  # when it begins to listen is its own affair
                await open_session(house.served, ALICE)
                await open_session(house.served, BOB)
                await asyncio.wait([reading], timeout=0.1)
            lines.append((await reading).decode())
            await open_session(house.served, ALICE)
            await act(house.served, BOB, None, action="session", op="create", name="last")
            while "last" not in lines[-1]:
                lines.append((await process.stdout.readline()).decode())
    finally:
        process.kill()
        await process.communicate()
    assert has_trace("".join(lines), house.things[ALICE]) is None
    owners = {house.served.psi.service.session(json.loads(line)["session-id"]).owner for line in lines}  # type: ignore[union-attr]
    assert owners == {BOB}


# -- agents


async def by_agent(house: House, user: str, *requests: Mapping[str, Any]) -> list[str]:
    """What psi-tool tells the agent of a user's session, one answer for each request."""
    session = await open_session(house.served, user)
    prompt = "\n".join(f"/tool psi-tool {json.dumps(request)}" for request in requests)
    with house.served.psi.watch(session) as events:
        await submit(house.served, user, session, prompt)
        await house.served.clock.advance(0)
        happened = [each.data.event for each in events.waiting() if each.type == "run-event"]
    told = [each.result for each in happened if isinstance(each, ToolFinished)]
    assert len(told) == len(requests)
    return told


async def test_an_agent_reaches_what_its_sessions_owner_may_reach(house: House) -> None:
    theirs = house.things[ALICE]
    before = await house.everything(ALICE)
    for kind, request, key in TOOL_REQUESTS.values():
        if key is None:
            continue

        def naming(name: str, request: Mapping[str, Any] = request, key: str = key) -> dict[str, Any]:
            if "params" in request:
                return {**request, "params": {**request["params"], key: name}}
            return {**request, key: name}

        for name in theirs.named[kind]:
            answer, nothing = await by_agent(house, BOB, naming(name), naming(NOWHERE[kind]))
            assert answer.replace(name, NOWHERE[kind]) == nothing
            assert json.loads(answer)["psi-tool/overall-status"] == "error"
            assert has_trace(answer, theirs, [name]) is None
    for query in (f"[{WHOLE}]", f"[{{:psi.system/sessions [{LEAVES}]}}]"):
        for seed in ({}, *({each: theirs.session} for each in SEEDS)):
            (told,) = await by_agent(house, BOB, {"action": "query", "query": query, "entity": seed})
            assert has_trace(told, theirs, seed.values()) is None
    assert await house.everything(ALICE) == before


async def test_what_an_agent_makes_belongs_to_its_sessions_owner(house: House) -> None:
    listed, made, planned = await by_agent(
        house,
        BOB,
        {"action": "session", "op": "list"},
        {"action": "session", "op": "create", "name": "made by an agent"},
        {
            "action": "scheduler",
            "op": "create",
            "kind": "session",
            "message": "x",
            "delay-ms": 1000,
            "session-config": {"session-name": "planned by an agent"},
        },
    )
    assert has_trace(listed, house.things[ALICE]) is None
    assert house.things[BOB].session in listed
    assert '"ok"' in made
    assert '"ok"' in planned
    await house.served.clock.advance(2)
    owners = {each.name: each.owner for each in house.served.psi.service.context().sessions()}
    assert owners["made by an agent"] == owners["planned by an agent"] == BOB
    assert LOCAL_USER not in owners.values()


# -- credentials that end


@pytest.mark.parametrize("name", [name for name in FACES if name != "in process"])  # where nobody shows a token
async def test_a_revoked_token_opens_nothing_any_more(house: House, name: str) -> None:
    face = house.face(name, BOB)
    assert len(await face.sessions()) == 3
    found = house.credentials.find_token(house.token(BOB), now=datetime.now(UTC))
    assert found is not None
    house.credentials.revoke(found.id, now=datetime.now(UTC))
    refusal = await face.open("x")
    assert isinstance(refusal, Refusal)
    if name == "command line":
        assert re.search(r"refused \(401\): this token was revoked", refusal.message or "")
    else:
        assert refusal.code == "auth/revoked-token"
    # The others of the same user go on.
    assert len(await house.face(name, BOB, "read").sessions()) == 3


async def test_a_login_is_bound_as_its_token(house: House) -> None:
    found = house.credentials.find_token(house.token(BOB, "read"), now=datetime.now(UTC))
    assert found is not None
    login = house.credentials.log_in(found, now=datetime.now(UTC))
    cookie = f"{COOKIE}={login.text}"
    for field, text in OF_ALL.items():
        answer = await house.served.post("/graphql", operation("query", text), cookie=cookie)
        assert answer.status == 200, field
        assert has_trace(answer.text, house.things[ALICE]) is None
        assert any(trace in answer.text for trace in house.things[BOB].traces)
    asked = operation("mutation", MUTATIONS["closeSession"][1], house.things[BOB].session)
    refused = await house.served.post("/graphql", asked, cookie=cookie)
    assert refused.json()["data"]["closeSession"]["problems"][0]["code"] == "auth/read-only"
    house.credentials.log_out(login.text)
    gone = await house.served.post("/graphql", operation("query", OF_ALL["sessions"]), cookie=cookie)
    assert gone.status == 401


async def test_an_open_socket_is_closed_soon_after_its_token_was_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "_RECHECK", 0.05)
    async with (
        two_users(tmp_path, init_timeout=0.05) as house,
        following(house, BOB, "read") as revoked,
        following(house, BOB, "write") as kept,
    ):
        for follower in (revoked, kept):
            await follower.subscribe("1", operation("subscription", FOLLOWING["sessionEvents"]))
            assert await follower.settle() == []
        found = house.credentials.find_token(house.token(BOB, "read"), now=datetime.now(UTC))
        assert found is not None
        house.credentials.revoke(found.id, now=datetime.now(UTC))
        assert await revoked.closed() == 4403
        await open_session(house.served, BOB)
        assert [each["id"] for each in await kept.settle()] == ["1"]


async def test_what_is_for_administrators_needs_their_scope_and_shows_no_sessions(house: House) -> None:
    for path in ("/auth/tokens", "/metrics"):
        for scope in ("read", "write"):
            refused = await house.served.get(path, authorization=f"Bearer {house.token(BOB, scope)}")
            assert (refused.status, refused.json()["error"]["code"]) == (403, "auth/missing-scope")
        shown = await house.served.get(path, authorization=f"Bearer {house.token(BOB, 'admin')}")
        assert shown.status == 200
        assert has_trace(shown.text, house.things[ALICE]) is None
