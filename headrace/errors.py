"""What can go wrong at the command line itself.

::

    UsageError        an argument that no command can act on
"""


class UsageError(Exception):
    """An argument that no command can act on; the message names it and the remedy."""
