"""The signatures whose examples look most like an unknown line: character n-grams and nearest neighbours.

Imported only when a line is unknown: scikit-learn costs more to load than everything else here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neighbors import NearestNeighbors

from triage.explain import LINE_LIMIT, Near, example_texts
from triage.signature import Signature

FLOOR: Final = 0.15  # below, the likeness says nothing
_MASKS: Final = (
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b"), "0x0"),
    (re.compile(r"\d+"), "0"),
    (re.compile(r"\s+"), " "),
)


def masked(text: str) -> str:
    """Return a line with numbers, addresses and runs of blanks made equal."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text[:LINE_LIMIT])
    return text


class Corpus:
    """Example lines and titles of all signatures as TF-IDF vectors of 3 to 5 characters."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self._by_id = {s.id: s for s in signatures}
        texts = [(s.id, s.title) for s in signatures]
        texts += [pair for pair in example_texts(s.path for s in signatures) if pair[0] in self._by_id]
        self._texts = texts
        self._vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
        self._model = NearestNeighbors(metric="cosine", algorithm="brute")
        self._model.fit(self._vectorizer.fit_transform([masked(text) for _, text in texts]))

    def query(self, line: str, count: int = 3) -> list[Near]:
        """Return the nearest signatures, each once, best first; none when nothing is alike."""
        asked = min(len(self._texts), 8 * count)
        distances, indices = self._model.kneighbors(self._vectorizer.transform([masked(line)]), n_neighbors=asked)
        found: dict[str, Near] = {}
        for distance, index in zip(distances[0], indices[0], strict=True):
            name, text = self._texts[int(index)]
            likeness = round(1.0 - float(distance), 3)
            if likeness >= FLOOR and name not in found and len(found) < count:
                signature = self._by_id[name]
                found[name] = Near(name, signature.title, signature.class_, likeness, text)
        return list(found.values())
