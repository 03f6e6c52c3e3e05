"""Makes vLLM's API servers balance by exact counts: a plugin of the group ``vllm.general_plugins``.

Installed beside vLLM, it makes the API servers of one deployment share one table. Each request that
vLLM would balance, in the internal and hybrid load-balancing modes, goes to the engine with the fewest
in flight from all of them. What vLLM decides without balancing stays as it is, and is counted. If
anything is wrong with the table, vLLM decides as it would have without this plugin.

Settings, by environment:

``HEADCOUNT_VLLM=0``
    turns it off.
``HEADCOUNT_VLLM_PATH``
    where the table lies. Default: ``/dev/shm/headcount-vllm-UID-DEPLOYMENT``.
``HEADCOUNT_VLLM_POLICY``
    a policy's name, as for ``Table.join``. Default: ``in_flight``.
"""

import atexit
import multiprocessing

from headcount.vllm import _deployment, _on_import, _settings
from headcount.vllm._client import install

__all__ = ["register"]


def register() -> None:
    """What vLLM calls in each of its processes. Any number of times is as good as once.

    Only a process that imports vLLM's engine client has anything to do with it.
    """
    settings = _settings.from_environment()
    if settings is None:
        return
    _on_import.then("vllm.v1.engine.core_client", lambda module: install(module, settings))
    if multiprocessing.parent_process() is None:
        # A deployment that is told to end kills its API servers, and ends its first process last.
        atexit.unregister(_deployment.sweep_at_the_end)
        atexit.register(_deployment.sweep_at_the_end)
