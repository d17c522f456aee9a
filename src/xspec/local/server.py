"""The local model's server process: `python -m xspec.local.server`, started by xspec.

One line of JSON comes on stdin (see `process.server_settings`), one line `{"port": N}` goes to stdout, and the process
ends when stdin closes, so that a killed parent leaves nothing behind. The engine serves HTTP by itself.
"""

import json
import os
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

from xspec.errors import UserError
from xspec.local.model import require_local


def main() -> int:
    """Serves until stdin closes. Returns 2 if the model cannot be served (one line on stderr)."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engine is free to print; stdout is for the one line
    settings = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        server = _serve(settings)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"port": urlsplit(server.listening_address).port}), file=answer, flush=True)
    threading.Event().wait()
    return 0


def _serve(settings: dict[str, Any]) -> Any:
    path = require_local(settings["model"], settings["gguf_sha256"])
    import xllamacpp  # type: ignore[import-not-found, import-untyped, unused-ignore]

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = {settings["model"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = settings["n_ctx"] * settings["n_parallel"]  # the engine divides it among the requests
    parameters.n_parallel = settings["n_parallel"]
    parameters.cpuparams.n_threads = settings["threads"]
    parameters.cpuparams_batch.n_threads = settings["threads"]
    parameters.cache_prompt = settings["cache_prompt"]
    parameters.cache_ram_mib = 0
    parameters.n_gpu_layers = 0
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.fit_params = False  # else it would change the above to what it thinks the machine can bear
    parameters.kv_unified = False
    parameters.warmup = True
    parameters.use_jinja = True
    parameters.ui = False
    return xllamacpp.Server(parameters)


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)  # at once: the engine's threads know nothing of Python's end


if __name__ == "__main__":
    sys.exit(main())
