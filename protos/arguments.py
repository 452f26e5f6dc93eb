"""Types of the numbers on command lines: all programs say the same of the same mistake, and leave with 2."""

import argparse
from collections.abc import Callable
from typing import Final

LAST_PORT: Final = 65535


def at_least(least: int) -> Callable[[str], int]:
    """A whole number of `least` or more.

    >>> at_least(1)("7")
    7
    """

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"{number} is less than {least}")
        return number

    return parse


def port(text: str) -> int:
    """A TCP port; 0 means what the argument says of it.

    >>> port("8080")
    8080
    """
    number = at_least(0)(text)
    if number > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{number} is no port: the last is {LAST_PORT}")
    return number


def positive_number(text: str) -> float:
    """A number above 0.

    >>> positive_number("0.5")
    0.5
    """
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number
