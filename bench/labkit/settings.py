# SPDX-License-Identifier: Apache-2.0
"""The configuration of a daemon, as sections of keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Settings = dict[str, dict[str, Any]]


def toml_text(settings: Settings) -> str:
    """JSON's strings, numbers, booleans and lists of those are TOML's as well."""
    lines = []
    for section, values in settings.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(v)}" for key, v in values.items()), ""]
    return "\n".join(lines)


def merged(base: Settings, extra: Mapping[str, Mapping[str, Any]]) -> Settings:
    sections = {**base, **{name: {} for name in extra if name not in base}}
    return {name: {**values, **extra.get(name, {})} for name, values in sections.items()}
