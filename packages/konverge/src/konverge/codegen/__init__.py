"""Generate Python source from API descriptions: `konverge.k8s` from a server, typed classes from CRD files.

Nothing here does I/O. `openapi` and `crds` parse a description into shapes, and `source` renders shapes as Python.
"""

from __future__ import annotations

from konverge.codegen.crds import models_from_crds
from konverge.codegen.openapi import ApiDescription
from konverge.codegen.packages import package_files

__all__ = ["ApiDescription", "models_from_crds", "package_files"]
