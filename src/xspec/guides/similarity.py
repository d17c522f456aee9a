"""How alike two texts are by their words: no model, no download, the same on every machine."""

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]{3,}")


def words(text: str) -> list[str]:
    """Lower-case words of three letters or digits and more; `send_money` is two."""
    return _WORD.findall(text.lower())


class LexicalIndex:
    """Cosine similarity of TF-IDF vectors (Salton & Buckley 1988: term frequency times log inverse document frequency).

    The documents decide the weights: a word that stands in all of them weighs nothing.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        counts = [Counter(words(document)) for document in documents]
        containing = Counter(word for count in counts for word in count)
        self._idf = {word: math.log(len(counts) / n) for word, n in containing.items()}
        if len(counts) == 1:
            self._idf = dict.fromkeys(self._idf, 1.0)
        self._vectors = [self._vector(count) for count in counts]

    def similarities(self, query: str) -> list[float]:
        """Of each document with the query: 0, nothing in common, to 1."""
        vector = self._vector(Counter(words(query)))
        return [_dot(vector, document) for document in self._vectors]

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        weights = {word: n * self._idf[word] for word, n in counts.items() if self._idf.get(word)}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()} if length else {}


def _dot(a: dict[str, float], b: dict[str, float]) -> float:
    few, many = sorted((a, b), key=len)
    return math.fsum(weight * many[word] for word, weight in few.items() if word in many)


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Shared words over all words; 0 where there are none."""
    return len(a & b) / len(a | b) if a or b else 0.0
