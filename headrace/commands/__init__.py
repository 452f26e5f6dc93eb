"""The commands, one module per family; each adds its parsers and imports what it needs when it runs."""

from typing import TYPE_CHECKING, Protocol

from headrace.commands import broker, config, demo, dlq, features, log, offline, publish, replay, serve, status, train

if TYPE_CHECKING:
    from headrace.commands.parsing import Commands


class Command(Protocol):
    """A module of commands."""

    def add(self, commands: "Commands") -> None:
        """Add its parsers."""


COMMANDS: tuple[Command, ...] = (
    demo, train, publish, serve, offline, replay, status, log, dlq, broker, config, features,
)  # fmt: skip
