"""Errors of the demo.

DemoError   a part of the demo could not start, or died
"""


class DemoError(Exception):
    """A part of the demo could not start, or died; the message names its log."""
