"""Environments of Gym and Gymnasium, and the wrappers around them."""

from __future__ import annotations

from gradlint.interpret.lineage import alias, parent

for _package in ("gym", "gymnasium"):
    alias(f"{_package}.core", _package)
    for _name in ("ObservationWrapper", "ActionWrapper", "RewardWrapper"):
        parent(f"{_package}.{_name}", f"{_package}.Wrapper")
    parent(f"{_package}.Wrapper", f"{_package}.Env")
