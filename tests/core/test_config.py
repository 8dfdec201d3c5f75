"""What a session is told to be: every key, good and bad, in EDN and in JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.core.config import NO_CONFIG, Model, SessionConfig, read_config
from psi.core.errors import ConfigInvalid, Invalid
from psi.core.message import Message, is_picture, says
from psi.edn import Keyword, dumps, freeze

TOOLS = ("read", "bash")
ONE = datetime(2026, 4, 22, 13, 0, tzinfo=UTC)


def read(value: Any) -> SessionConfig:
    return read_config(value, tools=TOOLS)


def refusal(value: Any) -> ConfigInvalid:
    with pytest.raises(ConfigInvalid) as caught:
        read(value)
    return caught.value


def skill(**entries: Any) -> Any:
    return freeze(entries)


def said(role: str, text: str, timestamp: datetime | None = None) -> Message:
    return Message(role=role, content=says(text), timestamp=timestamp)


# -- what is accepted: the EDN text, the JSON text, and what is read from either

FORMS: list[tuple[str, str, SessionConfig]] = [
    ("{}", "{}", NO_CONFIG),
    ('{:session-name "night watch"}', '{"session-name": "night watch"}', SessionConfig(session_name="night watch")),
    ('{:session_name "a"}', '{"session_name": "a"}', SessionConfig(session_name="a")),
    ('{"session-name" "a"}', '{":session-name": "a"}', SessionConfig(session_name="a")),
    ("{:session-name nil}", '{"session-name": null}', NO_CONFIG),
    ('{:system-prompt "Be brief."}', '{"system-prompt": "Be brief."}', SessionConfig(system_prompt="Be brief.")),
    ('{:system-prompt ""}', '{"system-prompt": ""}', SessionConfig(system_prompt="")),
    ('{:developer-prompt "Use uv."}', '{"developer-prompt": "Use uv."}', SessionConfig(developer_prompt="Use uv.")),
    (
        "{:developer-prompt-source :explicit}",
        '{"developer-prompt-source": "explicit"}',
        SessionConfig(developer_prompt_source=Keyword("explicit")),
    ),
    (
        "{:developer-prompt-source :a/b}",
        '{"developer_prompt_source": ":a/b"}',
        SessionConfig(developer_prompt_source=Keyword("a/b")),
    ),
    (
        '{:model {:provider "anthropic" :id "opus"}}',
        '{"model": {"provider": "anthropic", "id": "opus"}}',
        SessionConfig(model=Model("anthropic", "opus")),
    ),
    ('{:model "anthropic:opus"}', '{"model": "anthropic:opus"}', SessionConfig(model=Model("anthropic", "opus"))),
    ('{:model "local:qwen:7b"}', '{"model": "local:qwen:7b"}', SessionConfig(model=Model("local", "qwen:7b"))),
    *(
        (
            f"{{:thinking-level :{level}}}",
            f'{{"thinking-level": "{level}"}}',
            SessionConfig(thinking_level=Keyword(level)),
        )
        for level in ("off", "minimal", "low", "medium", "high", "xhigh")
    ),
    ("{:skills []}", '{"skills": []}', NO_CONFIG),
    (
        '{:skills ["git" {:name "tidy" :max_depth 2}]}',
        '{"skills": ["git", {"name": "tidy", "max-depth": 2}]}',
        SessionConfig(skills=(skill(name="git"), freeze({"name": "tidy", "max-depth": 2}))),
    ),
    ("{:tool-ids []}", '{"tool-ids": []}', SessionConfig(tool_ids=())),
    ('{:tool-ids ["bash" "read"]}', '{"tool-ids": ["bash", "read"]}', SessionConfig(tool_ids=("bash", "read"))),
    (
        '{:preloaded-messages [{:role "user" :content "Hi."} {:role :assistant :content "Ho."}]}',
        '{"preloaded-messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]}',
        SessionConfig(preloaded_messages=(said("user", "Hi."), said("assistant", "Ho."))),
    ),
    (
        '{:preloaded-messages [{:role "system" :content [{:type :text :text "Hi."}] :timestamp "2026-04-22T13:00Z"}]}',
        (
            '{"preloaded-messages": [{"role": "system", "content": [{"type": "text", "text": "Hi."}], '
            '"timestamp": "2026-04-22T13:00:00Z"}]}'
        ),
        SessionConfig(preloaded_messages=(said("system", "Hi.", ONE),)),
    ),
    ("{:cache-breakpoints #{}}", '{"cache-breakpoints": []}', NO_CONFIG),
    (
        "{:cache-breakpoints #{:system :tools}}",
        '{"cache-breakpoints": ["tools", "system"]}',
        SessionConfig(cache_breakpoints=frozenset({Keyword("system"), Keyword("tools")})),
    ),
    (
        "{:cache-breakpoints [:tools]}",
        '{"cache-breakpoints": [":tools", "tools"]}',
        SessionConfig(cache_breakpoints=frozenset({Keyword("tools")})),
    ),
    (
        "{:prompt-component-selection {}}",
        '{"prompt-component-selection": {}}',
        SessionConfig(prompt_component_selection=freeze({})),
    ),
    (
        (
            '{:prompt-component-selection {:components #{:preamble :skills} :tool-names ["read"] :skill-names ["git"] '
            ':extension-prompt-contributions ["x"] :agents-md? false}}'
        ),
        (
            '{"prompt-component-selection": {"components": ["skills", "preamble"], "tool_names": ["read"], '
            '"skill-names": ["git"], "extension-prompt-contributions": ["x"], "agents-md?": false}}'
        ),
        SessionConfig(
            prompt_component_selection=freeze(
                {
                    "components": frozenset({Keyword("preamble"), Keyword("skills")}),
                    "tool-names": ["read"],
                    "skill-names": ["git"],
                    "extension-prompt-contributions": ["x"],
                    "agents-md?": False,
                }
            )
        ),
    ),
]


@pytest.mark.parametrize(("edn", "_json", "config"), FORMS)
def test_a_config_is_read_from_edn(edn: str, _json: str, config: SessionConfig) -> None:
    assert read(edn) == config


@pytest.mark.parametrize(("_edn", "text", "config"), FORMS)
def test_a_config_is_read_from_json(_edn: str, text: str, config: SessionConfig) -> None:
    assert read(json.loads(text)) == config


def test_an_instant_of_edn_is_a_timestamp() -> None:
    config = read('{:preloaded-messages [{:role :user :content "Hi." :timestamp #inst "2026-04-22T13:00:00Z"}]}')
    assert config.preloaded_messages == (said("user", "Hi.", ONE),)


PICTURE = {"type": "image", "media-type": "image/png", "data": "iVBORw0KGgo="}


@pytest.mark.parametrize(
    "part", [PICTURE, {"type": Keyword("image"), "media_type": "image/png", "data": PICTURE["data"]}]
)
def test_a_part_may_be_a_picture(part: Any) -> None:
    (message,) = read({"preloaded-messages": [{"role": "user", "content": [part]}]}).preloaded_messages
    assert message.as_data() == {"role": "user", "content": [PICTURE]}
    assert is_picture(message.content[0])


def test_parts_that_were_accepted_once_are_still_read_where_they_are_kept() -> None:
    odd = [{"type": "image", "media-type": 5, "size": "huge"}, {"type": "sound"}, {"type": "text", "text": "a", "b": 1}]
    data = {"preloaded-messages": [{"role": "user", "content": odd}]}
    assert len(refusal(data).problems) == 5
    (message,) = read_config(data, tools=TOOLS, who="session", kept=True).preloaded_messages
    assert message.as_data()["content"] == odd


@pytest.mark.parametrize("length", [1, 200])
def test_a_name_has_up_to_two_hundred_characters(length: int) -> None:
    assert read({"session-name": "x" * length}).session_name == "x" * length


def test_all_keys_together() -> None:
    config = read(
        {
            "session-name": "night watch",
            "system-prompt": "Be brief.",
            "developer-prompt": "Use uv.",
            "developer-prompt-source": "explicit",
            "model": "anthropic:opus",
            "thinking-level": "low",
            "skills": ["git"],
            "tool-ids": ["read"],
            "preloaded-messages": [{"role": "user", "content": "Hi."}],
            "cache-breakpoints": ["system"],
            "prompt-component-selection": {"agents-md?": True},
        }
    )
    assert config == SessionConfig(
        session_name="night watch",
        system_prompt="Be brief.",
        developer_prompt="Use uv.",
        developer_prompt_source=Keyword("explicit"),
        model=Model("anthropic", "opus"),
        thinking_level=Keyword("low"),
        skills=(skill(name="git"),),
        tool_ids=("read",),
        preloaded_messages=(said("user", "Hi."),),
        cache_breakpoints=frozenset({Keyword("system")}),
        prompt_component_selection=freeze({"agents-md?": True}),
    )


# -- what is refused

NAME = "a non-blank string of at most 200 characters"
KEYWORD = "a keyword such as :explicit"
MODEL = '{:provider "..." :id "..."} or "provider:id"'
LEVEL = "one of :off :minimal :low :medium :high :xhigh"
SKILL = 'a skill name or a map such as {:name "..."}'
TOOL = "the id of a tool this runtime has (bash, read)"
ROLE = "user, assistant or system"
CONTENT = 'a non-empty string or a vector of parts such as {:type :text :text "..."}'
PART = 'a part such as {:type :text :text "..."}'
KINDS = "one of :text :image"
MEDIA_TYPE = 'the media type of an image, such as "image/png"'
DATA = "an image as base64 text"
INSTANT = "an ISO-8601 UTC instant"
SELECTION = "components, tool-names, skill-names, extension-prompt-contributions, agents-md?"


def hello(**entries: Any) -> Any:
    return {"preloaded-messages": [{"role": "user", "content": "Hi.", **entries}]}


def selecting(**entries: Any) -> Any:
    return {"prompt-component-selection": {name.replace("_", "-"): item for name, item in entries.items()}}


WRONG: list[tuple[Any, str]] = [
    # session-name
    ({"session-name": ""}, f'session-name: expected {NAME}, got ""'),
    ({"session-name": " \t"}, f'session-name: expected {NAME}, got " \\t"'),
    ({"session-name": "x" * 201}, f'session-name: expected {NAME}, got "{"x" * 58}…'),
    ({"session-name": 5}, f"session-name: expected {NAME}, got 5"),
    ({"session-name": Keyword("a")}, f"session-name: expected {NAME}, got :a"),
    # prompts
    ({"system-prompt": 5}, "system-prompt: expected a string, got 5"),
    ({"system-prompt": ["a"]}, 'system-prompt: expected a string, got ["a"]'),
    ({"system-prompt": Keyword("a")}, "system-prompt: expected a string, got :a"),
    ({"developer-prompt": True}, "developer-prompt: expected a string, got true"),
    ({"developer-prompt-source": 5}, f"developer-prompt-source: expected {KEYWORD}, got 5"),
    ({"developer-prompt-source": ""}, f'developer-prompt-source: expected {KEYWORD}, got ""'),
    ({"developer-prompt-source": ":"}, f'developer-prompt-source: expected {KEYWORD}, got ":"'),
    ({"developer-prompt-source": "two words"}, f'developer-prompt-source: expected {KEYWORD}, got "two words"'),
    # model
    ({"model": "opus"}, f'model: expected {MODEL}, got "opus"'),
    ({"model": ":opus"}, f'model: expected {MODEL}, got ":opus"'),
    ({"model": "anthropic:"}, f'model: expected {MODEL}, got "anthropic:"'),
    ({"model": " : "}, f'model: expected {MODEL}, got " : "'),
    ({"model": 5}, f"model: expected {MODEL}, got 5"),
    ({"model": ["anthropic", "opus"]}, f'model: expected {MODEL}, got ["anthropic" "opus"]'),
    ({"model": Keyword("opus")}, f"model: expected {MODEL}, got :opus"),
    ({"model": {"provider": "a"}}, "model.id: expected a non-blank string, got nothing"),
    ({"model": {"id": "a"}}, "model.provider: expected a non-blank string, got nothing"),
    ({"model": {"provider": "a", "id": " "}}, 'model.id: expected a non-blank string, got " "'),
    ({"model": {"provider": 5, "id": "b"}}, "model.provider: expected a non-blank string, got 5"),
    (
        {"model": {"provider": "a", "id": "b", "size": 7}},
        "model.size: expected one of the keys provider, id, got 7",
    ),
    # thinking-level
    ({"thinking-level": "hard"}, f'thinking-level: expected {LEVEL}, got "hard"'),
    ({"thinking-level": Keyword("High")}, f"thinking-level: expected {LEVEL}, got :High"),
    ({"thinking-level": 3}, f"thinking-level: expected {LEVEL}, got 3"),
    # skills
    ({"skills": "git"}, 'skills: expected a vector of skills, got "git"'),
    ({"skills": {"name": "git"}}, 'skills: expected a vector of skills, got {:name "git"}'),
    ({"skills": ["git", 5]}, f"skills[1]: expected {SKILL}, got 5"),
    ({"skills": [""]}, f'skills[0]: expected {SKILL}, got ""'),
    ({"skills": [None]}, f"skills[0]: expected {SKILL}, got nil"),
    ({"skills": [{"title": "git"}]}, "skills[0].name: expected a non-blank string, got nil"),
    ({"skills": [{"name": ""}]}, 'skills[0].name: expected a non-blank string, got ""'),
    # tool-ids
    ({"tool-ids": "read"}, 'tool-ids: expected a vector of tool ids, got "read"'),
    ({"tool-ids": ["read", "raed"]}, f'tool-ids[1]: expected {TOOL}, got "raed"'),
    ({"tool-ids": [5]}, f"tool-ids[0]: expected {TOOL}, got 5"),
    ({"tool-ids": [Keyword("read")]}, f"tool-ids[0]: expected {TOOL}, got :read"),
    # preloaded-messages
    ({"preloaded-messages": "Hi."}, 'preloaded-messages: expected a vector of messages, got "Hi."'),
    ({"preloaded-messages": ["Hi."]}, 'preloaded-messages[0]: expected a map with :role and :content, got "Hi."'),
    (hello(role="tool"), f'preloaded-messages[0].role: expected {ROLE}, got "tool"'),
    (hello(role=5), f"preloaded-messages[0].role: expected {ROLE}, got 5"),
    (hello(content=""), f'preloaded-messages[0].content: expected {CONTENT}, got ""'),
    (hello(content=[]), f"preloaded-messages[0].content: expected {CONTENT}, got []"),
    (hello(content=5), f"preloaded-messages[0].content: expected {CONTENT}, got 5"),
    (hello(content=["Hi."]), f'preloaded-messages[0].content[0]: expected {PART}, got "Hi."'),
    (hello(content=[{"text": "Hi."}]), f"preloaded-messages[0].content[0].type: expected {KINDS}, got nothing"),
    (hello(content=[{"type": None}]), f"preloaded-messages[0].content[0].type: expected {KINDS}, got nil"),
    (hello(content=[{"type": "sound"}]), f'preloaded-messages[0].content[0].type: expected {KINDS}, got "sound"'),
    (hello(content=[{"type": Keyword("Text")}]), f"preloaded-messages[0].content[0].type: expected {KINDS}, got :Text"),
    (hello(content=[{"type": "text"}]), "preloaded-messages[0].content[0].text: expected a string, got nothing"),
    (
        hello(content=[{"type": "text", "text": "a", "size": 5}]),
        "preloaded-messages[0].content[0].size: expected one of the keys type, text, got 5",
    ),
    (
        hello(content=[{**PICTURE, "size": "huge"}]),
        'preloaded-messages[0].content[0].size: expected one of the keys type, media-type, data, got "huge"',
    ),
    (
        hello(content=[{**PICTURE, "media-type": 5}]),
        f"preloaded-messages[0].content[0].media-type: expected {MEDIA_TYPE}, got 5",
    ),
    (
        hello(content=[{**PICTURE, "media-type": "text/html"}]),
        f'preloaded-messages[0].content[0].media-type: expected {MEDIA_TYPE}, got "text/html"',
    ),
    (hello(content=[{**PICTURE, "data": "%"}]), f'preloaded-messages[0].content[0].data: expected {DATA}, got "%"'),
    (hello(content=[{**PICTURE, "data": ""}]), f'preloaded-messages[0].content[0].data: expected {DATA}, got ""'),
    (
        hello(content=[{"type": "image", "media-type": "image/png"}]),
        f"preloaded-messages[0].content[0].data: expected {DATA}, got nothing",
    ),
    (hello(content=[{"type": "text", "text": 5}]), "preloaded-messages[0].content[0].text: expected a string, got 5"),
    (hello(timestamp="soon"), f'preloaded-messages[0].timestamp: expected {INSTANT}, got "soon"'),
    (hello(timestamp=5), f"preloaded-messages[0].timestamp: expected {INSTANT}, got 5"),
    (
        hello(id="m-1"),
        'preloaded-messages[0].id: expected one of the keys role, content, timestamp, got "m-1"',
    ),
    ({"preloaded-messages": [{"content": "Hi."}]}, f"preloaded-messages[0].role: expected {ROLE}, got nothing"),
    ({"preloaded-messages": [{"role": "user"}]}, f"preloaded-messages[0].content: expected {CONTENT}, got nothing"),
    # cache-breakpoints
    ({"cache-breakpoints": "system"}, 'cache-breakpoints: expected a set of :system and :tools, got "system"'),
    ({"cache-breakpoints": ["user"]}, 'cache-breakpoints[0]: expected one of :system :tools, got "user"'),
    ("{:cache-breakpoints #{:user}}", "cache-breakpoints[0]: expected one of :system :tools, got :user"),
    # prompt-component-selection
    ({"prompt-component-selection": []}, "prompt-component-selection: expected a map, got []"),
    (selecting(components="a"), 'prompt-component-selection.components: expected a set of keywords, got "a"'),
    (selecting(components=[5]), f"prompt-component-selection.components[0]: expected {KEYWORD}, got 5"),
    (selecting(tool_names="a"), 'prompt-component-selection.tool-names: expected a vector of strings, got "a"'),
    (selecting(skill_names=[5]), "prompt-component-selection.skill-names[0]: expected a string, got 5"),
    (
        selecting(extension_prompt_contributions=5),
        "prompt-component-selection.extension-prompt-contributions: expected a vector of strings, got 5",
    ),
    (
        {"prompt-component-selection": {"agents-md?": "yes"}},
        'prompt-component-selection.agents-md?: expected true or false, got "yes"',
    ),
    (
        {"prompt-component-selection": {"agents-md?": 1}},
        "prompt-component-selection.agents-md?: expected true or false, got 1",
    ),
    (selecting(tools=[]), f"prompt-component-selection.tools: expected one of the keys {SELECTION}, got []"),
    # one key twice
    ({"session-name": "a", "session_name": "b"}, 'session-name: expected one value, got "b"'),
]


@pytest.mark.parametrize(("value", "problem"), WRONG)
def test_a_problem_is_told_with_its_path_what_was_expected_and_what_came(value: Any, problem: str) -> None:
    error = refusal(value)
    assert str(error) == f"scheduler session-config is invalid: {problem}"
    assert error.code == "session-config/invalid"
    assert isinstance(error, Invalid)


def test_a_runtime_without_tools_says_so() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_config({"tool-ids": ["read"]}, tools=())
    assert str(caught.value) == (
        "scheduler session-config is invalid: "
        'tool-ids[0]: expected the id of a tool this runtime has (none), got "read"'
    )


def test_the_error_names_who_asked() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_config({"session-name": ""}, tools=(), who="session create")
    assert str(caught.value) == f'session create config is invalid: session-name: expected {NAME}, got ""'


def test_all_problems_are_told_together() -> None:
    error = refusal(
        '{:session-name " " :model {:provider 5} :skills ["git" 5 {}] :tool-ids ["x"] '
        ':preloaded-messages [{:role "tool" :content "Hi."} {}]}'
    )
    problems = [
        f'session-name: expected {NAME}, got " "',
        "model.provider: expected a non-blank string, got 5",
        "model.id: expected a non-blank string, got nothing",
        f"skills[1]: expected {SKILL}, got 5",
        "skills[2].name: expected a non-blank string, got nil",
        f'tool-ids[0]: expected {TOOL}, got "x"',
        f'preloaded-messages[0].role: expected {ROLE}, got "tool"',
        f"preloaded-messages[1].role: expected {ROLE}, got nothing",
        f"preloaded-messages[1].content: expected {CONTENT}, got nothing",
    ]
    assert str(error) == f"scheduler session-config is invalid: {'; '.join(problems)}"
    assert [str(problem) for problem in error.problems] == problems


def test_the_facts_of_an_error_are_its_problems_one_by_one() -> None:
    error = refusal({"preloaded-messages": [{"role": "tool", "content": "Hi."}]})
    assert error.facts() == {
        "problems": [
            {
                "path": "preloaded-messages[0].role",
                "expected": "user, assistant or system",
                "got": '"tool"',
                "message": 'preloaded-messages[0].role: expected user, assistant or system, got "tool"',
            }
        ]
    }


def test_unsupported_keys_are_refused_and_told_sorted() -> None:
    error = refusal({"zeal": 1, "tool-defs": [], "session-name": "a", "child?": True})
    assert str(error) == "scheduler session-config contains unsupported keys"
    assert error.unsupported == ("child?", "tool-defs", "zeal")
    assert error.facts()["unsupported-keys"] == ["child?", "tool-defs", "zeal"]


def test_an_unsupported_key_is_told_with_the_nearest_one() -> None:
    error = refusal({"system-promt": "Be brief.", "zzz": 1})
    assert [str(problem) for problem in error.problems] == [
        'system-promt: expected a supported key (did you mean `system-prompt`?), got "Be brief."',
        "zzz: expected a supported key, got 1",
    ]


def test_unsupported_keys_do_not_hide_the_other_problems() -> None:
    error = refusal({"zeal": 1, "session-name": ""})
    assert str(error) == "scheduler session-config contains unsupported keys"
    assert [problem.path for problem in error.problems] == ["zeal", "session-name"]


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (None, "nil"),
        (5, "5"),
        ([], "[]"),
        (Keyword("a"), ":a"),
        ("[]", "[]"),
        ("nil", "nil"),
    ],
)
def test_what_is_no_map_is_refused(value: Any, got: str) -> None:
    (problem,) = refusal(value).problems
    assert problem.expected == "a map, or an EDN string of one"
    assert problem.got == got


def test_a_text_that_cannot_be_read_is_shown_and_then_what_the_reader_says() -> None:
    (problem,) = refusal("{:a").problems
    assert problem.got == '"{:a"'
    assert str(problem) == (
        'expected a map, or an EDN string of one, got "{:a", which cannot be read: line 1, column 4: expected }, '
        "found the end of the text; the { opened at line 1, column 1 is not closed"
    )
    assert problem.as_data()["message"] == str(problem)


def test_a_map_that_edn_cannot_write_is_told_apart_from_what_the_writer_says() -> None:
    (problem,) = refusal({"skills": [{"name": "git", "by": object}]}).problems
    assert (problem.path, problem.got) == ("skills[0]", "a map")
    assert ", got a map, which cannot be written: " in str(problem)


def test_the_facts_of_an_error_can_be_sent_as_edn_and_as_json() -> None:
    for value, _ in WRONG:
        dumps(refusal(value).as_data())
        json.dumps(refusal(value).as_data())
    dumps(refusal({"zeal": 1}).as_data())
    json.dumps(refusal({"zeal": 1}).as_data())


@pytest.mark.parametrize(
    ("config", "ends", "more"),
    [
        ({"tool-ids": ["zeal"] * 51}, "; and 1 more", {"more-problems": 1}),
        ({"tool-ids": list(range(50_000))}, "; and 49 950 more", {"more-problems": 49_950}),
        (
            {f"key-{n:03}": n for n in range(60)},
            "contains unsupported keys",
            {"more-unsupported-keys": 10, "more-problems": 10},
        ),
    ],
)
def test_of_very_many_problems_the_first_are_told_and_how_many_more(config: Any, ends: str, more: Any) -> None:
    error = refusal(config)
    assert str(error).endswith(ends)
    facts = error.facts()
    assert len(facts.pop("problems")) == 50
    assert facts.pop("unsupported-keys", None) in (None, [f"key-{n:03}" for n in range(50)])
    assert facts == more
    assert len(str(error)) < 10_000


def test_fifty_problems_are_all_told() -> None:
    error = refusal({"tool-ids": ["zeal"] * 50})
    assert "more" not in str(error)
    assert list(error.facts()) == ["problems"]


# -- what was read can be told again

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
filled = texts.filter(str.strip)
words = st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True)
keywords = words.map(Keyword)
entry_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | keywords,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(words, inside, max_size=3),
    max_leaves=5,
)
parts = st.builds(lambda text: {"type": "text", "text": text}, texts) | st.builds(
    lambda kind, data: {"type": "image", "media-type": f"image/{kind}", "data": b64encode(data).decode()},
    words,
    st.binary(min_size=1, max_size=20),
)
instants = st.datetimes(timezones=st.just(UTC))
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": texts.filter(bool) | st.lists(parts, min_size=1, max_size=3),
    },
    optional={"timestamp": instants},
)
skills = filled | st.builds(lambda name, more: {**more, "name": name}, filled, st.dictionaries(words, entry_values))
selections = st.fixed_dictionaries(
    {},
    optional={
        "components": st.sets(keywords, max_size=3),
        "tool-names": st.lists(texts, max_size=3),
        "skill-names": st.lists(texts, max_size=3),
        "extension-prompt-contributions": st.lists(texts, max_size=3),
        "agents-md?": st.booleans(),
    },
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "session-name": filled,
        "system-prompt": texts,
        "developer-prompt": texts,
        "developer-prompt-source": keywords,
        "model": st.fixed_dictionaries({"provider": filled, "id": filled}),
        "thinking-level": st.sampled_from(["off", "minimal", "low", "medium", "high", "xhigh"]),
        "skills": st.lists(skills, max_size=3),
        "tool-ids": st.lists(st.sampled_from(TOOLS), max_size=3),
        "preloaded-messages": st.lists(messages, max_size=3),
        "cache-breakpoints": st.sets(st.sampled_from(["system", "tools"])),
        "prompt-component-selection": selections,
    },
)


@given(configs)
def test_a_config_as_data_reads_back_to_an_equal_config(data: dict[str, Any]) -> None:
    config = read(data)
    assert read(config.as_data()) == config


@given(configs)
def test_a_config_as_edn_text_reads_back_to_an_equal_config(data: dict[str, Any]) -> None:
    config = read(data)
    assert read(dumps(config.as_data())) == config


@given(configs)
def test_a_config_can_be_compared_and_hashed(data: dict[str, Any]) -> None:
    assert hash(read(data)) == hash(read(data))
    assert read(data) == read(data)


def test_a_config_that_says_nothing_has_no_data() -> None:
    assert NO_CONFIG.as_data() == {}


def test_what_json_has_as_text_becomes_a_keyword_where_edn_has_one() -> None:
    config = read({"thinking-level": "low", "developer-prompt-source": "explicit", "cache-breakpoints": ["tools"]})
    text = "{:developer-prompt-source :explicit, :thinking-level :low, :cache-breakpoints #{:tools}}"
    assert dumps(config.as_data()) == text.replace(",", "")


def test_no_tools_at_all_is_told_apart_from_every_tool() -> None:
    assert read({"tool-ids": []}).as_data() == {"tool-ids": []}
    assert read({}).as_data() == {}


def test_a_config_as_data_is_in_its_normal_form() -> None:
    config = read(
        {"model": "anthropic:opus", "skills": ["git"], "preloaded_messages": [{"role": "user", "content": "Hi."}]}
    )
    assert config.as_data() == {
        "model": {"provider": "anthropic", "id": "opus"},
        "skills": [{"name": "git"}],
        "preloaded-messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
    }


def test_a_model_is_shown_as_its_provider_and_id() -> None:
    assert str(Model("anthropic", "opus")) == "anthropic:opus"


# -- what may be shown of it


def test_the_summary_has_counts_and_flags() -> None:
    config = read(
        {
            "session-name": "night watch",
            "system-prompt": "Be brief.",
            "developer-prompt": "Use uv.",
            "model": "anthropic:opus",
            "thinking-level": "low",
            "skills": ["git", "tidy"],
            "tool-ids": ["read"],
            "preloaded-messages": [{"role": "user", "content": "Hi."}] * 3,
            "prompt-component-selection": {},
        }
    )
    assert config.summary() == {
        "session-name": "night watch",
        "model": {"provider": "anthropic", "id": "opus"},
        "thinking-level": "low",
        "skill-count": 2,
        "tool-count": 1,
        "has-system-prompt?": True,
        "has-developer-prompt?": True,
        "preloaded-message-count": 3,
        "has-prompt-component-selection?": True,
    }


def test_the_summary_of_nothing_has_all_its_keys() -> None:
    assert NO_CONFIG.summary() == {
        "session-name": None,
        "model": None,
        "thinking-level": None,
        "skill-count": 0,
        "tool-count": 0,
        "has-system-prompt?": False,
        "has-developer-prompt?": False,
        "preloaded-message-count": 0,
        "has-prompt-component-selection?": False,
    }


@given(configs)
def test_the_summary_never_has_a_prompt_or_a_message(data: dict[str, Any]) -> None:
    secret = "the-secret-9f3c"
    shown = read(
        {
            **data,
            "system-prompt": secret,
            "developer-prompt": secret,
            "preloaded-messages": [{"role": "user", "content": secret}],
            "skills": [{"name": "git", "body": secret}],
            "prompt-component-selection": {"tool-names": [secret]},
        }
    ).summary()
    assert secret not in str(shown)


def test_of_very_many_unknown_keys_only_the_first_are_taken_for_typos() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_config({f"model{place}": 1 for place in range(10_000)}, tools=())
    hints = [problem.expected for problem in caught.value.problems]
    assert len(hints) == 50
    assert sum("did you mean `model`?" in hint for hint in hints) == 20
