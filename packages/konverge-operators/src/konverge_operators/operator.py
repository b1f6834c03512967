"""All operators of this package in one process: `konverge run konverge_operators`."""

from __future__ import annotations

from konverge.manager import Operator
from konverge_operators.database.operator import operator as database
from konverge_operators.ecommerce.operator import operator as ecommerce
from konverge_operators.myapp.operator import operator as myapp
from konverge_operators.redis.operator import operator as redis
from konverge_operators.webapp.operator import operator as webapp

__all__ = ["operator"]

operator = Operator.combine("konverge-operators", webapp, database, redis, ecommerce, myapp)
