"""The paired sign-flip permutation test with clusters.

Under the hypothesis of no effect a cluster's summed difference is as likely to come out with the other sign. All
tasks of a cluster flip together. (Fisher 1935; with clusters: Gail et al. 1996, Statistics in Medicine 15.)
On Pass^k, whose differences are mostly 0, it is conservative.
"""

import numpy as np

from xspec.analysis.consistency import Floats
from xspec.analysis.resampling import RESAMPLES, SEED, sign_patterns

# Sums of the same thirds and fifths in another order differ in the last bits, and must count as ties.
_TIE = 1e-9


def sign_flip_p(sums: Floats, draws: int = RESAMPLES - 1, seed: int = SEED) -> Floats:
    """Two-sided p-values of columns: `sums` has a row a cluster and a column a contrast or experiment.

    p = share of all sign patterns whose total is at least as far from 0 as the one found; with random patterns
    (1 + count)/(1 + draws), so that it is never 0 (Phipson and Smyth 2010).
    """
    signs, exact = sign_patterns(sums.shape[0], draws, seed)
    found = np.abs(sums.sum(axis=0))
    as_far = np.count_nonzero(np.abs(signs @ sums) >= found - _TIE, axis=0)
    return np.asarray(as_far / len(signs) if exact else (1 + as_far) / (1 + len(signs)), dtype=np.float64)
