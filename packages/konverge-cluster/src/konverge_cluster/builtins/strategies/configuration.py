"""Strategies of ConfigMaps and Secrets."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import configuration as rules

__all__ = ["ConfigMapStrategy", "SecretStrategy"]


class ConfigMapStrategy(BuiltinStrategy):
    """ConfigMaps. They have no generation and no subresources."""

    check = staticmethod(rules.validate_config_map)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_config_map_update(new, old)


class SecretStrategy(BuiltinStrategy):
    """Secrets. `stringData` is merged into `data` and removed."""

    selectable_fields = ("type",)
    check = staticmethod(rules.validate_secret)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_secret_update(new, old)

    def default(self, document: Document) -> None:
        document.setdefault("type", "Opaque")
        strings = document.pop("stringData", None)
        if strings:
            encoded = {key: base64.b64encode(text.encode()).decode() for key, text in strings.items()}
            document["data"] = {**document.get("data", {}), **encoded}

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        if not new.get("type"):
            new["type"] = old["type"]
        super().prepare_update(new, old, context)
