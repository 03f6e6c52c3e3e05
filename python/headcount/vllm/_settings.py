"""The plugin's settings, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from headcount._policy import PolicyName
from headcount.vllm._log import log

_OFF = ("0", "off", "false", "no")
_ON = ("1", "on", "true", "yes")

POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)


@dataclass(frozen=True)
class Settings:
    """The settings of the plugin."""

    path: str | None = None
    """The path of the table. None: a path that belongs to the deployment."""
    policy: PolicyName = "in_flight"
    """The policy by which the API servers route."""
    count_output: bool = False
    """Whether the tokens of a request grow with its output."""


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings | None:
    """Returns the settings, or None if the plugin is turned off."""
    if environment.get("HEADCOUNT_VLLM", "1").strip().lower() in _OFF:
        return None
    asked = environment.get("HEADCOUNT_VLLM_POLICY") or Settings.policy
    policy = next((policy for policy in POLICIES if policy == asked), None)
    if policy is None:
        log.warning(
            "headcount: HEADCOUNT_VLLM_POLICY is %r, which is no policy; using %s. The policies are: %s",
            asked,
            Settings.policy,
            ", ".join(POLICIES),
        )
        policy = Settings.policy
    return Settings(
        path=environment.get("HEADCOUNT_VLLM_PATH") or None,
        policy=policy,
        count_output=_truth("HEADCOUNT_VLLM_COUNT_OUTPUT", environment),
    )


def _truth(name: str, environment: Mapping[str, str]) -> bool:
    """Returns whether a setting is on. It is off by default, and if its value is none."""
    value = environment.get(name, "").strip().lower()
    if value not in ("", *_OFF, *_ON):
        log.warning("headcount: %s is %r, and must be 0 or 1; using 0", name, value)
    return value in _ON
