"""The area under the ROC curve, from histograms and from rows."""

import numpy as np
import numpy.typing as npt

from recmodels.metrics.base import Floats, Ints, Labels

Counts = npt.NDArray[np.float64] | npt.NDArray[np.int64] | npt.NDArray[np.uint32]


def binned_auc(positives: Counts, negatives: Counts) -> float:
    """AUC of rows counted by score, in ascending order of score; rows of one bin are ties. NaN without both classes.

    >>> binned_auc(np.array([0, 1, 3]), np.array([4, 0, 1]))
    0.875
    """
    pos, neg = positives.astype(np.float64), negatives.astype(np.float64)
    pairs = pos.sum() * neg.sum()
    if pairs == 0:
        return float("nan")
    below = np.cumsum(neg) - neg
    return float(np.dot(pos, below + 0.5 * neg) / pairs)


def exact_auc(score: Floats, label: Labels) -> float:
    """AUC of rows, ties counting one half; NaN without both classes."""
    aucs = group_aucs(score, label, np.zeros(len(score), np.int64))
    return float(aucs[0]) if len(aucs) else float("nan")


def group_aucs(score: Floats, label: Labels, group: Ints) -> npt.NDArray[np.float64]:
    """AUC of each group that holds both classes, in ascending order of group id."""
    if len(score) == 0:
        return np.empty(0)
    order = np.lexsort((score, group))
    score, group, positive = score[order], group[order], label[order] > 0
    tie_starts = np.flatnonzero(np.r_[True, (score[1:] != score[:-1]) | (group[1:] != group[:-1])])
    pos = np.add.reduceat(positive.astype(np.float64), tie_starts)
    neg = np.add.reduceat((~positive).astype(np.float64), tie_starts)
    tie_group = group[tie_starts]
    starts = np.flatnonzero(np.r_[True, tie_group[1:] != tie_group[:-1]])
    total_pos, total_neg = np.add.reduceat(pos, starts), np.add.reduceat(neg, starts)
    sizes = np.diff(np.r_[starts, len(pos)])
    below = np.cumsum(neg) - neg
    below -= np.repeat(below[starts], sizes)
    won = np.add.reduceat(pos * (below + 0.5 * neg), starts)
    both = (total_pos > 0) & (total_neg > 0)
    return np.asarray(won[both] / (total_pos[both] * total_neg[both]))
