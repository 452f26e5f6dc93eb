"""Instants and ages, as people read and write them."""

import argparse
import datetime
import re

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"(\d+)([smhd])")


def instant(milliseconds: int) -> str:
    """An instant for people.

    >>> instant(0)
    '1970-01-01T00:00:00.000+00:00'
    """
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat(timespec="milliseconds")


def age(milliseconds: int) -> str:
    """A length of time for people, in its two greatest units.

    >>> age(840), age(61_000), age(2 * 86_400_000 + 3_600_000)
    ('0.8 s', '1 m 1 s', '2 d 1 h')
    """
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, milliseconds = divmod(milliseconds, _UNITS_MS[unit])
        parts.append((count, unit))
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)


def moment(text: str) -> int:
    """An argument type: an instant in ms, or an age as a negative number of them; `since_epoch` makes instants of both.

    >>> moment("1970-01-01T00:01"), moment("90s")
    (60000, -90000)
    """
    if found := _AGE.fullmatch(text):
        return -int(found[1]) * _UNITS_MS[found[2]]
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time (2026-11-30T12:00) nor an age (90s, 2h)"
        ) from None
    return int((at if at.tzinfo else at.replace(tzinfo=datetime.UTC)).timestamp() * 1000)


def since_epoch(moment_ms: int | None, now_ms: int) -> int | None:
    """The instant that a moment means now."""
    return now_ms + moment_ms if moment_ms is not None and moment_ms < 0 else moment_ms
