"""Every number on every command line: what is none, or out of range, is one clear line and the exit code 2."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from headrace import __main__ as headrace
from publisher import __main__ as publisher
from trainer import __main__ as trainer

PROGRAMS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "headrace": headrace.build_parser,
    "publisher": publisher.build_parser,
    "trainer": trainer._parser,
}
# No number of any of these options.
NEVER = ("-1", "x", "", "0x10", "nan", "inf", "-0.5", "1e400")


@dataclass(frozen=True, kw_only=True)
class Number:
    """An option or an argument that takes a number, and what must come before it."""

    program: str
    before: tuple[str, ...]
    action: argparse.Action

    @property
    def name(self) -> str:
        return f"{self.program} {' '.join(self.before)} {'/'.join(self.action.option_strings) or self.action.dest}"

    def given(self, text: str) -> list[str]:
        if self.action.option_strings:
            return [*self.before, f"{self.action.option_strings[0]}={text}"]
        return [*self.before, text]


def numbers(parser: argparse.ArgumentParser, program: str, before: tuple[str, ...] = ()) -> Iterator[Number]:
    positional = before
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from numbers(inner, program, (*before, name))
        elif action.type is not None and _is_number(action.type):
            yield Number(program=program, before=before if action.option_strings else positional, action=action)
        elif not action.option_strings:
            positional = (*positional, "x")


def _is_number(kind: object) -> bool:
    return kind in (int, float) or getattr(kind, "__module__", "") == "protos.arguments"


NUMBERS = [number for program, build in PROGRAMS.items() for number in numbers(build(), program)]


def refused(number: Number, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as left:
        PROGRAMS[number.program]().parse_args(number.given(text))
    assert left.value.code == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_every_number_is_of_one_of_our_types() -> None:
    assert [number.name for number in NUMBERS if number.action.type in (int, float)] == []
    assert len(NUMBERS) > 20


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_what_is_no_number_of_an_option_is_told(number: Number, capsys: pytest.CaptureFixture[str]) -> None:
    for text in NEVER:
        line = refused(number, text, capsys)
        assert "error: argument" in line and (number.action.option_strings or [number.action.dest])[0].lower() in (
            line.lower()
        )
        assert "no whole number" in line or "less than" in line or "no number" in line or "not above 0" in line


@pytest.mark.parametrize(
    "number", [n for n in NUMBERS if "port" in n.action.dest], ids=lambda number: number.name
)  # fmt: skip
def test_no_port_is_beyond_the_last(number: Number, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("65536", "99999"):
        assert refused(number, text, capsys).endswith(f"{text} is no port: the last is 65535")
    assert number.action.type is not None
    for text in ("0", "1", "65535"):
        assert number.action.type(text) == int(text)  # type: ignore[operator]


def test_programs_leave_with_2_before_they_do_anything(capsys: pytest.CaptureFixture[str]) -> None:
    runs: list[Callable[[], object]] = [
        lambda: publisher.run(["x.config", "--metrics-port", "99999"]),
        lambda: trainer.run(["x.config", "--metrics-port", "99999"], {}),
        lambda: trainer.run(["x.config", "--metrics-port", "65535"], {"WORLD_SIZE": "2"}),
        lambda: headrace.run(["serve", "x", "--port", "99999"], out=sys.stdout, errors=sys.stderr, environment={}),
    ]
    for run in runs:
        with pytest.raises(SystemExit) as left:
            run()
        assert left.value.code == 2
        assert "port" in capsys.readouterr().err.splitlines()[-1]


def test_ranks_that_would_listen_beyond_the_last_port_are_not_started(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "x.config", "--nproc", "2", "--metrics-port", "65535"]
    assert headrace.run(arguments, out=sys.stdout, errors=sys.stderr, environment={}) == 2
    assert "--metrics-port: the last rank would listen on 65536" in capsys.readouterr().err
