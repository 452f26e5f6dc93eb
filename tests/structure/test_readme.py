"""What the README shows is there, and works."""

import re
import shlex
from pathlib import Path

import pytest

from headrace.__main__ import build_parser
from protos.dispositions import check
from protos.load import parse_config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = sorted(
    {
        (page.name, line.split("#")[0].strip())
        for page in PAGES
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r" {4}headrace ", line)
    }
)
COMMANDS = [line.split("#")[0].strip() for line in README.splitlines() if re.match(r" {4}(headrace|make) ", line)]


@pytest.mark.parametrize(("page", "command"), SHOWN)
def test_commands_are_those_of_our_command_line(page: str, command: str) -> None:
    build_parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make")])
def test_verbs_are_those_of_the_makefile(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command.split()[1]}: ", makefile, re.MULTILINE)


def test_the_readme_shows_the_two_commands_that_matter() -> None:
    assert {"make demo", "make test"} <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")) if "://" not in link]
    assert links or page != ROOT / "README.md"
    assert [link for link in links if not (page.parent / link.split("#")[0]).exists()] == []


def test_every_page_is_reached_from_the_readme() -> None:
    linked = {(ROOT / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link}
    pages = {page.resolve() for page in (ROOT / "docs").glob("*.md")}
    assert sorted(page.name for page in pages - linked) == []


def test_the_configuration_has_no_findings() -> None:
    (text,) = re.findall(r"```textproto\n(.*?)```", README, re.DOTALL)
    report = check(parse_config(text, json=False))
    assert (report.errors, report.notices) == ((), ())


def test_ci_runs_the_makefile() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if line.startswith("make")] == ["make check", "make test"]
