"""What the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from headcount.vllm._log import log

POLICIES = ("in_flight", "open", "floor", "tokens", "round_robin", "power_of_two")


@dataclass(frozen=True)
class Settings:
    """How the plugin is to work."""

    path: str | None = None
    """Where the table lies; None for a place of the deployment's own."""
    policy: str = "in_flight"


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings | None:
    """The settings; None if the plugin is turned off."""
    if environment.get("HEADCOUNT_VLLM", "1").strip().lower() in ("0", "off", "false", "no"):
        return None
    policy = environment.get("HEADCOUNT_VLLM_POLICY") or Settings.policy
    if policy not in POLICIES:
        log.warning(
            "headcount: HEADCOUNT_VLLM_POLICY is %r, which is no policy; using %s. There are: %s",
            policy,
            Settings.policy,
            ", ".join(POLICIES),
        )
        policy = Settings.policy
    return Settings(path=environment.get("HEADCOUNT_VLLM_PATH") or None, policy=policy)
