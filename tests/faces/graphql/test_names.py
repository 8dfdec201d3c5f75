from __future__ import annotations

import re

import pytest
from graphql import GraphQLEnumType, GraphQLNonNull, GraphQLObjectType, get_named_type, parse
from graphql.language import ObjectTypeDefinitionNode, StringValueNode

from psi.faces.graphql import sdl
from psi.faces.graphql.names import FIELDS, enum_name, field_name
from psi.faces.graphql.roots import SCHEMA
from psi.graph.attributes import TEXT, Attribute, Enum
from resolvers import ATTRIBUTES, ENTITIES

CORE = SCHEMA._schema


def attributes_in_sdl() -> dict[str, dict[str, str]]:
    """For each type, which field carries which attribute, read back from the text of the schema."""
    found: dict[str, dict[str, str]] = {}
    for node in parse(sdl()).definitions:
        if isinstance(node, ObjectTypeDefinitionNode):
            for field in node.fields or ():
                for directive in field.directives or ():
                    if directive.name.value == "attribute":
                        (argument,) = directive.arguments or ()
                        assert isinstance(argument.value, StringValueNode)
                        found.setdefault(node.name.value, {})[field.name.value] = argument.value.value
    return found


@pytest.mark.parametrize(
    ("attribute", "home", "name"),
    [
        ("psi.scheduler/created-session-id", "psi.scheduler", "createdSessionId"),
        ("psi.scheduler/pending-count", "psi.agent-session", "schedulerPendingCount"),
        ("psi.agent-session/is-idle", "psi.session-info", "agentSessionIsIdle"),
        ("psi.run/id", "psi.run", "id"),
    ],
)
def test_a_field_is_named_after_its_attribute(attribute: str, home: str, name: str) -> None:
    assert field_name(Attribute(attribute, TEXT, ""), home) == name


def test_every_field_of_an_entity_type_says_which_attribute_it_shows() -> None:
    told = attributes_in_sdl()
    for entity in ENTITIES:
        kind = CORE.get_type(entity.name)
        assert isinstance(kind, GraphQLObjectType)
        assert told[entity.name].keys() == kind.fields.keys()


def test_fields_and_attributes_are_one_to_one() -> None:
    for name, fields in attributes_in_sdl().items():
        assert len(set(fields.values())) == len(fields), name
        assert {field: FIELDS[name][field].attribute.name for field in fields} == fields


@pytest.mark.parametrize(
    ("type_", "fields"),
    [
        ("Schedule", ["scheduleId", "createdSessionId", "deliveryPhase", "errorSummary", "originSession"]),
        ("Session", ["sessionId", "schedulerPendingCount", "schedulerSchedules", "runs", "messageHistory"]),
        ("Run", ["id", "source", "state", "startedAt", "finishedAt", "session"]),
        ("Graph", ["resolverCount", "rootQueryableAttrs", "dependencies"]),
        ("System", ["version", "uptimeMs", "counters"]),
    ],
)
def test_a_type_has_what_its_identity_leads_to(type_: str, fields: list[str]) -> None:
    assert set(fields) <= FIELDS[type_].keys()


def test_what_every_entity_leads_to_is_no_field_of_each() -> None:
    assert not any("psi.system/" in field.attribute.name for field in FIELDS["Schedule"].values())


def test_every_declared_attribute_that_can_be_asked_is_a_field_somewhere() -> None:
    shown = {field.attribute.name for fields in FIELDS.values() for field in fields.values()}
    # What is left are answers of mutations, and keys inside open maps.
    assert {name for name in ATTRIBUTES if name not in shown} == {
        "psi.agent-session/stopped?",
        "psi.agent-session/closed?",
        "psi.resolver/sym",
        "psi.resolver/input",
        "psi.resolver/output",
        "psi.attr/produced-by",
        "psi.attr/reachable-via",
    }


def test_enums_have_the_words_of_their_attributes() -> None:
    for fields in FIELDS.values():
        for field in fields.values():
            kind = field.attribute.type
            if isinstance(kind, Enum):
                shown = CORE.get_type(kind.name)
                assert isinstance(shown, GraphQLEnumType)
                assert list(shown.values) == [enum_name(word) for word in kind.values]


def test_a_field_is_non_null_where_its_attribute_is_never_nil() -> None:
    for name, fields in FIELDS.items():
        kind = CORE.get_type(name)
        assert isinstance(kind, GraphQLObjectType)
        for field in fields.values():
            assert isinstance(kind.fields[field.name].type, GraphQLNonNull) is not field.attribute.nullable, field


def test_identities_are_ids_and_instants_have_a_scalar() -> None:
    schedule = CORE.get_type("Schedule")
    assert isinstance(schedule, GraphQLObjectType)
    assert get_named_type(schedule.fields["scheduleId"].type).name == "ID"
    assert get_named_type(schedule.fields["fireAt"].type).name == "Instant"
    assert get_named_type(schedule.fields["errorSummary"].type).name == "JSON"


def test_the_schema_speaks_of_everything() -> None:
    text = sdl()
    for name in ("createSchedule", "cancelSchedule", "submitPrompt", "stopRun", "validateSessionConfig", "live"):
        assert re.search(rf"^  {name}\(", text, re.MULTILINE), name


def test_ids_are_ids_wherever_they_stand() -> None:
    found = {f"{kind}.{field.name}" for kind, fields in FIELDS.items() for field in fields.values() if field.is_id}
    assert {
        "Schedule.scheduleId",
        "Schedule.originSessionId",
        "Schedule.createdSessionId",
        "BackgroundJob.sessionId",
        "BackgroundJob.schedulerScheduleId",
        "Session.parentSessionId",
        "Session.scheduledFromScheduleId",
        "Session.activeRunId",
        "Run.id",
        "Run.sessionId",
        "SessionInfo.agentSessionSessionId",
    } <= found
    assert not [each for each in found if not each.lower().endswith("id")]
    for each in found:
        kind, _, name = each.partition(".")
        shown = str(SCHEMA._schema.type_map[kind].fields[name].type)  # type: ignore[attr-defined]
        assert shown.removesuffix("!") == "ID", each
