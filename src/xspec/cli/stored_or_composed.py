"""What the user names a spec by: an id (or its beginning), or overrides that compile to one."""

from collections.abc import Sequence

from xspec.cli.run import compile_plain
from xspec.errors import SpecError
from xspec.spec.compose import compose
from xspec.spec.models import ExperimentSpec
from xspec.spec.store import Store


def spec_named(words: Sequence[str], store_path: str) -> ExperimentSpec:
    """The spec that `words` stand for. Overrides are compiled and stored, so the id shown is one to go on with."""
    if len(words) == 1 and "=" not in words[0]:
        if not Store.looks_like_id(words[0]):
            raise SpecError(f"{words[0]!r} is neither a spec id like xs-1a2b… nor an override like k=3")
        store = Store(store_path, create=False)
        return store.spec(store.find_spec_id(words[0]))
    overrides = list(words) if any(w.startswith("store=") for w in words) else [*words, f"store={store_path}"]
    return compile_plain(compose(overrides))[0].spec
