"""What follows once a feature has its tokens: bucketize, default, or hand them on (feature_generation.md 2.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from features import kernels
from features.bucketize import Bucketizer
from features.choice import default_ids
from features.counts import OUT_OF_VOCABULARY, TRUNCATED
from features.elements import Int32s, Int64s, Tokens, as_tokens, text_tokens
from features.generator import Sparse, Strings
from features.judge import Judge
from features.number_stage import NO_IDS, fill_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenStage:
    """Ends with the ids of tokens, at most `limit` a row (0: all); without a bucketizer with the tokens of a stub.

    `default` is one token for rows that have none; "" stands for no token.
    """

    name: str
    bucketizer: Bucketizer | None
    default: str
    limit: int = 0
    fill: tuple[int, ...] = ()
    """The ids of the default."""

    @classmethod
    def of(cls, name: str, bucketizer: Bucketizer | None, default: str, limit: int = 0) -> TokenStage:
        """Look the default up once."""
        fill = () if bucketizer is None else default_ids(name, default, bucketizer)
        return cls(name=name, bucketizer=bucketizer, default=default, limit=limit, fill=fill)

    @property
    def total(self) -> bool:
        """Every token has an id, so nothing need be generated to know that rows are good."""
        return self.bucketizer is None or self.bucketizer.total

    def __call__(
        self,
        values: Int64s | Tokens,
        lengths: Int32s | None,
        judge: Judge,
        missing: npt.NDArray[np.bool_] | None = None,
    ) -> Sparse | Strings:
        """The ids; `missing` are the rows to fill, None: all that have no token."""
        values, lengths = self._truncate(values, lengths, judge)
        if self.bucketizer is None:
            return self._strings(as_tokens(values), lengths)
        if judge.faults is not None and self.bucketizer.total:
            return Sparse(NO_IDS)
        ids, status = self.bucketizer(values, check=judge.faults is not None)
        judge.ids(status, lengths)
        if judge.counting:
            judge.note(OUT_OF_VOCABULARY, self.bucketizer.unknown(values, ids))
            judge.missing(lengths if missing is None else (~missing).astype(np.int32), bool(self.fill))
        if lengths is None or not self.fill or lengths.all():
            return Sparse(ids, lengths)
        fill = np.array(self.fill, np.int64)
        return Sparse(*(fill_ids(ids, lengths, fill) if missing is None else fill_some(ids, lengths, fill, missing)))

    def check(self, values: Int64s | Tokens, lengths: Int32s | None, judge: Judge) -> None:
        """Note the rows that own a token without an id, also one that is not kept."""
        if self.bucketizer is not None and not self.bucketizer.total:
            judge.ids(self.bucketizer(values)[1], lengths)

    def _truncate(
        self, values: Int64s | Tokens, lengths: Int32s | None, judge: Judge
    ) -> tuple[Int64s | Tokens, Int32s | None]:
        if not self.limit or lengths is None or not (lengths > self.limit).any():
            return values, lengths
        judge.note(TRUNCATED, int((lengths > self.limit).sum()))
        keep = kernels.keep_first(lengths, self.limit)
        kept = values.keep(keep) if isinstance(values, Tokens) else values[keep]
        return kept, np.minimum(lengths, np.int32(self.limit))

    def _strings(self, tokens: Tokens, lengths: Int32s | None) -> Strings:
        if lengths is None or not self.default or lengths.all():
            return Strings(tokens, lengths)
        fill = text_tokens([self.default])
        data = np.concatenate((tokens.data, fill.data))
        starts, counts = fill_ids(tokens.starts, lengths, np.array([len(tokens.data)], np.int64))
        ends, _ = fill_ids(tokens.ends, lengths, np.array([len(data)], np.int64))
        return Strings(Tokens(data, starts, ends), counts)

    def describe(self) -> dict[str, object]:
        """What the ids depend on, for the digest."""
        return {
            "bucketizer": None if self.bucketizer is None else self.bucketizer.describe(),
            "default": self.default if self.bucketizer is None else list(self.fill),
            "limit": self.limit,
        }


def fill_some(ids: Int64s, lengths: Int32s, fill: Int64s, missing: npt.NDArray[np.bool_]) -> tuple[Int64s, Int32s]:
    """Give the missing rows the ids of `fill`; other rows without ids stay empty."""
    counts = np.where(missing, np.int32(len(fill)), lengths)
    out = np.empty(int(counts.sum()), np.int64)
    filled = np.repeat(missing, counts)
    out[~filled] = ids
    out[filled] = np.tile(fill, int(missing.sum()))
    return out, counts
