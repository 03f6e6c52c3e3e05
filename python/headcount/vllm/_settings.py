"""What the environment says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from headcount._policy import PolicyName
from headcount.vllm._log import log

POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)


@dataclass(frozen=True)
class Settings:
    """How the plugin is to work."""

    path: str | None = None
    """Where the table lies; None for a place of the deployment's own."""
    policy: PolicyName = "in_flight"


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings | None:
    """The settings; None if the plugin is turned off."""
    if environment.get("HEADCOUNT_VLLM", "1").strip().lower() in ("0", "off", "false", "no"):
        return None
    asked = environment.get("HEADCOUNT_VLLM_POLICY") or Settings.policy
    policy = next((policy for policy in POLICIES if policy == asked), None)
    if policy is None:
        log.warning(
            "headcount: HEADCOUNT_VLLM_POLICY is %r, which is no policy; using %s. There are: %s",
            asked,
            Settings.policy,
            ", ".join(POLICIES),
        )
        policy = Settings.policy
    return Settings(path=environment.get("HEADCOUNT_VLLM_PATH") or None, policy=policy)
