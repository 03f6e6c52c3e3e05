"""Makes vLLM's API servers balance by exact counts: a plugin of the group ``vllm.general_plugins``.

Installed beside vLLM, it makes the API servers of one deployment share one table. In the internal and hybrid
load-balancing modes, each request that vLLM would balance goes to the engine with the fewest requests in flight from
all API servers. A request that vLLM places without balancing goes where vLLM says, and is counted there. If the table
fails, vLLM decides as it does without this plugin.

Settings, by environment:

``HEADCOUNT_VLLM=0``
    turns the plugin off.
``HEADCOUNT_VLLM_PATH``
    the path of the table. Default: ``/dev/shm/headcount-vllm-UID-DEPLOYMENT``.
``HEADCOUNT_VLLM_POLICY``
    a policy's name, as for ``Table.join``. Default: ``in_flight``.
``HEADCOUNT_VLLM_COUNT_OUTPUT=1``
    lets the tokens of a request grow with its output. Default: they are those of its prompt.
"""

import atexit
import multiprocessing

from headcount.vllm import _deployment, _on_import, _settings
from headcount.vllm._client import install

__all__ = ["register"]


def register() -> None:
    """Installs the plugin; vLLM calls this in each of its processes. More calls than one change nothing.

    It takes effect only in a process that imports vLLM's engine client.
    """
    settings = _settings.from_environment()
    if settings is None:
        return
    _on_import.then("vllm.v1.engine.core_client", lambda module: install(module, settings))
    if multiprocessing.parent_process() is None:
        # This is the deployment's first process. When the deployment is stopped, it kills the API servers, and
        # ends last.
        atexit.unregister(_deployment.sweep_at_the_end)
        atexit.register(_deployment.sweep_at_the_end)
