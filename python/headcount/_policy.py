"""The names of policies."""

from typing import Literal, TypeAlias

PolicyName: TypeAlias = Literal[
    "in_flight", "open", "floor", "tokens", "round_robin", "power_of_two"
]
"""The name of a policy, by which the load of an engine is computed; see ``Table.join``."""
