"""The remedy for a misspelt name: the nearest one that exists."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` most likely means, or None.

    >>> nearest("batch_sise", ["batch_size", "model_dir"])
    'batch_size'
    """
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return found[0] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """A clause to end an error with.

    >>> suggestion("zzz", ["alpha", "beta"])
    'known are: alpha, beta'
    """
    names = sorted(known)
    guess = nearest(name, names)
    if guess is not None:
        return f"did you mean {guess}?"
    if not names:
        return "it takes none"
    return f"known are: {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"
