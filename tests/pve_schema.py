"""Holds recorded requests against the schema of the real API, where the project's shared facts are at hand."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.served_api import Request

SHARED = Path(__file__).resolve().parents[2] / "shared"


@cache
def validator() -> Any:
    """The module validate_pve with its schema loaded; None when it is not there."""
    folder = SHARED / "pve"
    if not (folder / "validate_pve.py").is_file():
        return None
    spec = importlib.util.spec_from_file_location("validate_pve", folder / "validate_pve.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load(str(folder / "pve-api.json"))
    return module


def assert_valid(requests: Iterable[Request]) -> None:
    """Every request would pass the parameter check of the real API. Skips the test when the facts are absent."""
    module = validator()
    if module is None:
        pytest.skip("../shared/pve/validate_pve.py is not here")
    wrong = {}
    for request in requests:
        encoding = "json" if request.headers.get("content-type", "").startswith("application/json") else "form"
        found = module.check(request.method, request.path, request.params, encoding)
        if found:
            wrong[f"{request.method} {request.target} {dict(request.form)}"] = found
    assert not wrong
