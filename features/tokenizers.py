"""Tokenizers: Hugging Face's tokenizer.json and SentencePiece's models, without special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Protocol

from features.errors import FeatureConfigError
from features.generator import Setting
from protos import feature_pb2


class Tokenizer(Protocol):
    """Turns texts into token ids 0 ... size-1."""

    @property
    def size(self) -> int:
        """How many different tokens there are."""
        ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        ...

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        ...


class BytePairs:
    """A tokenizer.json; its truncation holds, its padding does not: that depends on the other texts of a call."""

    def __init__(self, content: str) -> None:
        """Raise ValueError where the content is no tokenizer."""
        import tokenizers  # as large as all else here, and few configurations need it

        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(content)
        except Exception as error:  # noqa: BLE001 - tokenizers raises nothing more specific
            raise ValueError(str(error)) from error
        self._tokenizer.no_padding()
        self.size = int(self._tokenizer.get_vocab_size(with_added_tokens=True))
        self._digest = sha256(content.encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        # The fast one leaves out where in the text each token was.
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"tokenizer": "bpe", "content": self._digest}


class Pieces:
    """A SentencePiece model."""

    def __init__(self, content: bytes) -> None:
        """Raise ValueError where the content is no model."""
        import sentencepiece

        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        self.size = int(self._processor.get_piece_size())
        self._digest = sha256(content).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        return [list(ids) for ids in self._processor.encode(list(texts), out_type=int)]

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {"tokenizer": "sentencepiece", "content": self._digest}


def read_tokenizer(message: feature_pb2.TokenizeFeature, setting: Setting) -> Tokenizer:
    """Read the tokenizer of a feature; raise FeatureConfigError."""
    name, kind = message.feature_name, message.tokenizer_type
    path = f"{message.asset_dir.rstrip('/')}/{message.vocab_file}" if message.asset_dir else message.vocab_file
    if kind not in ("bpe", "sentencepiece"):
        raise FeatureConfigError(f"feature {name!r}: tokenizer_type {kind!r} must be bpe or sentencepiece")
    try:
        return BytePairs(setting.read_text(path)) if kind == "bpe" else Pieces(setting.read_bytes(path))
    except (OSError, ValueError) as error:
        raise FeatureConfigError(f"feature {name!r}: vocab_file {path!r} is no {kind} tokenizer: {error}") from error
