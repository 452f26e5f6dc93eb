"""The text normalizer of tokenize features (feature_generation.md 3.7)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from features.errors import FeatureConfigError
from features.generator import Setting
from protos import feature_pb2

LOWER2UPPER, UPPER2LOWER, SBC2DBC, CHT2CHS, FILTER, SPLITCHRS, REMOVE_SPACE = (
    feature_pb2.TEXT_LOWER2UPPER, feature_pb2.TEXT_UPPER2LOWER, feature_pb2.TEXT_SBC2DBC, feature_pb2.TEXT_CHT2CHS,
    feature_pb2.TEXT_FILTER, feature_pb2.TEXT_SPLITCHRS, feature_pb2.TEXT_REMOVE_SPACE,
)  # fmt: skip

DEFAULT_OPTIONS: Final = (LOWER2UPPER, SBC2DBC, CHT2CHS, FILTER)

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_TO_UPPER: Final = str.maketrans(_LOWER, _LOWER.upper())
_TO_LOWER: Final = str.maketrans(_LOWER.upper(), _LOWER)
_TO_HALF: Final[Mapping[int, int]] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_CJK: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")


@dataclass(frozen=True, kw_only=True, slots=True)
class TextNormalizer:
    """Maps a text; one of more than `max_length` characters (0: any) passes as it is.

    >>> TextNormalizer(options=frozenset({UPPER2LOWER, SBC2DBC}))("ＡＢc 1")
    'abc 1'
    """

    options: frozenset[int]
    max_length: int = 0
    stop_characters: frozenset[str] = frozenset()
    """What FILTER deletes; empty: all punctuation and symbols of Unicode."""

    def __call__(self, text: str) -> str:
        if self.max_length and len(text) > self.max_length:
            return text
        for option, step in self._steps():
            if option in self.options:
                text = step(text)
        return text

    def _steps(self) -> tuple[tuple[int, Callable[[str], str]], ...]:
        return (
            (SBC2DBC, lambda text: text.translate(_TO_HALF)),
            (UPPER2LOWER, lambda text: text.translate(_TO_LOWER)),
            (LOWER2UPPER, lambda text: text.translate(_TO_UPPER)),
            (CHT2CHS, _simplified),
            (FILTER, self._filtered),
            (REMOVE_SPACE, lambda text: "".join(text.split())),
            (SPLITCHRS, lambda text: _CJK.sub(r" \g<0> ", text)),
        )

    def _filtered(self, text: str) -> str:
        if self.stop_characters:
            return "".join(character for character in text if character not in self.stop_characters)
        return "".join(character for character in text if unicodedata.category(character)[0] not in "PS")

    def describe(self) -> dict[str, object]:
        """What the text depends on, for the digest."""
        return {
            "options": sorted(feature_pb2.TextNormalizeOption.Name(option) for option in self.options),
            "max_length": self.max_length,
            "stop_characters": sorted(self.stop_characters),
        }


def _simplified(text: str) -> str:
    if text.isascii():
        return text
    return "".join(map(_simplified_character, text))


@lru_cache(maxsize=1 << 16)
def _simplified_character(character: str) -> str:
    """Character by character: phrases would need words, which come later."""
    return _converter().convert(character)


class _Converter:
    """OpenCC, behind a type."""

    def __init__(self) -> None:
        import opencc  # loading its tables takes a while, and few configurations need them

        self._opencc = opencc.OpenCC("t2s")

    def convert(self, text: str) -> str:
        return str(self._opencc.convert(text))


@lru_cache(maxsize=1)
def _converter() -> _Converter:
    return _Converter()


def read_normalizer(name: str, message: feature_pb2.TextNormalizer, setting: Setting) -> TextNormalizer:
    """Read the normalizer of a feature; raise FeatureConfigError."""
    stop: frozenset[str] = frozenset()
    if message.stop_char_file:
        try:
            lines = setting.read_text(message.stop_char_file).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise FeatureConfigError(
                f"feature {name!r}: stop_char_file {message.stop_char_file!r} cannot be read: {error}"
            ) from error
        stop = frozenset(character for line in lines for character in line)
    options = frozenset(message.norm_options) or frozenset(DEFAULT_OPTIONS)
    return TextNormalizer(options=options, max_length=message.max_length, stop_characters=stop)
