"""Where the plugin says what it does: among vLLM's own lines, by vLLM's own settings."""

import logging

log = logging.getLogger("vllm.headcount")
