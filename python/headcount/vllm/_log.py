"""The plugin's logger, a child of vLLM's own, whose settings it has."""

import logging

log = logging.getLogger("vllm.headcount")
