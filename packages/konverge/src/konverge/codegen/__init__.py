"""Python source from API descriptions: `konverge.k8s` from a server, typed classes from a foreign CRD.

Nothing here does I/O. A description is read into shapes (`openapi`, `crds`), and shapes are written as source
(`source`).
"""

from __future__ import annotations

from konverge.codegen.crds import models_from_crds
from konverge.codegen.openapi import ApiDescription
from konverge.codegen.packages import package_files

__all__ = ["ApiDescription", "models_from_crds", "package_files"]
