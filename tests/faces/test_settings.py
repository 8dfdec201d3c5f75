from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.settings import DECLARED, Settings, SettingsInvalid, add_flags, is_loopback, read_origin, read_seconds

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def refused(flags: dict[str, Any] | None = None, env: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsInvalid) as caught:
        Settings.read(flags or {}, env or {})
    return [str(problem) for problem in caught.value.problems]


def test_without_a_word_the_service_is_for_this_machine_alone() -> None:
    settings = Settings.read({}, {})
    assert settings == Settings()
    assert (settings.host, settings.port, settings.auth) == ("127.0.0.1", 8420, False)


def test_a_flag_wins_over_its_variable_and_the_variable_over_the_default() -> None:
    env = {"PSI_PORT": "9000", "PSI_RATE": "5"}
    assert Settings.read({"port": "9001", "rate": None}, env) == Settings(port=9001, rate=5.0)


def test_a_variable_that_is_set_to_nothing_is_not_set() -> None:
    assert Settings.read({}, {"PSI_PORT": "", "PSI_AUTH": " "}) == Settings()


def test_names_that_are_no_setting_are_somebody_elses() -> None:
    assert Settings.read({"command": "serve", "op": None}, {"HOME": "/", "PORT": "80"}) == Settings()


@pytest.mark.parametrize(
    ("text", "size"),
    [("1024", 1024), ("512k", 512 << 10), ("512 K", 512 << 10), ("1MiB", 1 << 20), ("2m", 2 << 20), ("1GiB", 1 << 30)],
)
def test_a_size_is_bytes_or_a_number_with_its_unit(text: str, size: int) -> None:
    assert Settings.read({"max_body": text}, {}).max_body == size


@pytest.mark.parametrize("text", ["1MB", "1.5k", "-1", "k", "", "1e6", "2GiB", "63", "٣٠٠", "1" * 30])
def test_a_size_that_could_mean_two_things_or_nothing_is_refused(text: str) -> None:
    (said,) = refused({"max_body": text})
    assert said == (
        "--max-body must be a number of bytes, or one with k, KiB, M, MiB, G or GiB, from 64 bytes to 1 GiB, "
        f'got "{text}"'
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10.0), ("0.5", 0.5), ("500ms", 0.5), ("2m", 120.0), ("2 min", 120.0), ("1h", 3600.0)]
)
def test_a_length_of_time_is_seconds_or_a_number_with_its_unit(text: str, seconds: float) -> None:
    assert Settings.read({}, {"PSI_QUERY_TIMEOUT": text}).query_timeout == seconds


@pytest.mark.parametrize("text", ["1e3", "nan", "inf", "-1", "1.", ".5", "2 weeks", "0", "7200"])
def test_a_length_that_is_none_or_out_of_bounds_is_refused(text: str) -> None:
    (said,) = refused(env={"PSI_QUERY_TIMEOUT": text})
    assert said.startswith("PSI_QUERY_TIMEOUT must be a number of seconds")
    assert said.endswith(f'got "{text}"')


@pytest.mark.parametrize("text", ["1", "true", "YES", "on"])
def test_a_switch_is_on_by_any_of_its_words(text: str) -> None:
    assert Settings.read({}, {"PSI_AUTH": text}).auth is True


@pytest.mark.parametrize("text", ["0", "False", "no", "OFF"])
def test_a_switch_is_off_by_any_of_its_words(text: str) -> None:
    assert Settings.read({}, {"PSI_AUTH": text}).auth is False


def test_a_switch_that_is_neither_is_not_taken_for_on() -> None:
    assert refused(env={"PSI_AUTH": "maybe"}) == [
        'PSI_AUTH must be one of 1, 0, true, false, yes, no, on, off, got "maybe"'
    ]


def test_every_problem_is_named_at_once_by_what_it_came_from() -> None:
    said = refused({"port": "eighty", "host": "0.0.0.0", "burst": "0"}, {"PSI_RATE": "-1", "PSI_PROT": "3"})
    assert said[0] == "unknown variable PSI_PROT; did you mean PSI_PORT?"
    assert said[1:4] == [
        '--port must be a whole number from 0 to 65535, got "eighty"',
        'PSI_RATE must be a number from 0.001 to 1000000000, got "-1"',
        '--burst must be a whole number from 1 to 1000000000, got "0"',
    ]
    assert "--host 0.0.0.0 can be reached from other machines" in said[4]


def test_the_error_has_its_problems_as_data() -> None:
    with pytest.raises(SettingsInvalid) as caught:
        Settings.read({"port": "x"}, {})
    error = caught.value
    assert error.code == "settings/invalid"
    assert error.message == '--port must be a whole number from 0 to 65535, got "x"'
    assert error.facts() == {"problems": [{"source": "--port", "message": error.message}]}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("PSI_PORTS", "PSI_PORT"), ("PSI_LOGLEVEL", "PSI_LOG_LEVEL"), ("PSI_MAX_BODY_SIZE", "PSI_MAX_BODY")],
)
def test_a_variable_that_looks_like_a_setting_is_refused_with_the_name_that_was_meant(name: str, meant: str) -> None:
    assert refused(env={name: "1"}) == [f"unknown variable {name}; did you mean {meant}?"]


@pytest.mark.parametrize("name", ["PSI_URL", "PSI_SESSION", "PSI_TOKEN", "PSI_WHATEVER", "PSI_HOME", "PSIPORT"])
def test_a_variable_of_the_command_line_or_of_something_else_is_left_alone(name: str) -> None:
    assert Settings.read({}, {name: "x"}) == Settings()


def test_an_agent_that_this_version_does_not_have_is_refused() -> None:
    assert refused({"agent": "gpt-5"}) == ['--agent must be demo: this version has no other agent, got "gpt-5"']


def test_a_bad_value_is_not_repeated_in_full_length() -> None:
    (said,) = refused({"port": "9" * 5_000})
    assert len(said) < 200


# -- who can reach it


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.9.10", "localhost", "LOCALHOST", "::1", "[::1]", "::ffff:127.0.0.1"]
)
def test_a_loopback_host_needs_no_auth(host: str) -> None:
    assert is_loopback(Settings.read({"host": host}, {}).host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "127.1", "localhost.example.com", "0"])
def test_a_host_that_others_may_reach_is_refused_without_auth_and_the_ways_out_are_named(host: str) -> None:
    (said,) = refused({"host": host})
    assert said == (
        f"--host {host} can be reached from other machines while authentication is off, so anybody there could do "
        "everything; turn it on with --auth, listen on 127.0.0.1, or, where everybody on the network may do "
        "everything, say so with --allow-unauthenticated-network"
    )
    assert Settings.read({"host": host, "auth": True}, {}).host == host
    assert Settings.read({"host": host}, {"PSI_ALLOW_UNAUTHENTICATED_NETWORK": "yes"}).host == host


def test_nobody_gets_around_that_by_making_settings_directly() -> None:
    with pytest.raises(SettingsInvalid, match=r"host 0\.0\.0\.0 can be reached"):
        Settings(host="0.0.0.0")
    with pytest.raises(SettingsInvalid, match="port must be a whole number"):
        Settings(port=70_000)


@pytest.mark.parametrize("host", ["", " ", "http://x", "a b", "a/b", "[127.0.0.1]", "x:80", "-x", "a..b", "x" * 300])
def test_what_is_no_host_is_refused(host: str) -> None:
    (said,) = refused({"host": host, "auth": True})
    assert said.startswith("--host must be an address or a host name to listen on, got ")


# -- lists


def test_hosts_and_origins_are_taken_in_their_one_form() -> None:
    settings = Settings.read(
        {"allowed_hosts": ["Psi.Example.com", "b., [::1]"], "allowed_origins": ["HTTPS://A.example:443,http://b:3000"]},
        {},
    )
    assert settings.allowed_hosts == ("psi.example.com", "b", "::1")
    assert settings.allowed_origins == ("https://a.example", "http://b:3000")


@pytest.mark.parametrize("text", ["*", "null", "example.com", "https://a.example/path", "https://user@a", "http://a b"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    (said,) = refused({"allowed_origins": [text]})
    assert said.startswith("--allowed-origins must be origins of the form scheme://host[:port]")


@pytest.mark.parametrize("text", ["*", "*.example.com", "example.com:80", "http://example.com"])
def test_what_is_no_host_name_is_refused(text: str) -> None:
    (said,) = refused({"allowed_hosts": [text]})
    assert said.startswith("--allowed-hosts must be host names or addresses")


@given(st.text())
def test_whatever_a_text_is_it_is_an_origin_or_none_and_then_stays_itself(text: str) -> None:
    found = read_origin(text)
    assert found is None or read_origin(found) == found


@given(st.dictionaries(st.sampled_from([setting.variable for setting in DECLARED]), st.text()))
def test_whatever_the_environment_says_the_answer_is_settings_or_a_refusal(env: dict[str, str]) -> None:
    with suppress(SettingsInvalid):
        settings = Settings.read({}, env)
        assert is_loopback(settings.host) or settings.auth or settings.allow_unauthenticated_network


def test_a_length_of_time_may_be_days() -> None:
    assert read_seconds("30d") == 30 * 86_400


# -- what is made from the declarations


def test_argparse_gets_a_flag_for_each_setting_and_what_it_reads_are_settings() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    nothing = vars(parser.parse_args([]))
    assert set(nothing) == {setting.name for setting in DECLARED}
    assert Settings.read(nothing, {}) == Settings()
    typed = ["--auth", "--max-body", "2MiB", "--allowed-hosts", "a,b", "--allowed-hosts", "c", "--log-level", "DEBUG"]
    assert Settings.read(vars(parser.parse_args(typed)), {}) == Settings(
        auth=True, max_body=2 << 20, allowed_hosts=("a", "b", "c"), log_level="debug"
    )
    assert Settings.read(vars(parser.parse_args(["--no-auth"])), {"PSI_AUTH": "1"}).auth is False
    assert "%" not in parser.format_help()


def test_a_switch_that_is_turned_both_ways_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    assert vars(parser.parse_args(["--auth", "--auth"]))["auth"] is True
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--auth", "--no-auth"])
    assert ended.value.code == 2
    assert "--auth or --no-auth, not both" in capsys.readouterr().err


def test_every_setting_has_a_sentence_and_a_default_that_fits() -> None:
    for setting in DECLARED:
        assert setting.doc, setting.name
        assert setting.kind.fits(setting.default), setting.name


def test_every_setting_is_on_its_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [s.name for s in DECLARED if f"`{s.variable}`" not in page or s.flag not in page or s.doc not in page]
    assert missing == []
