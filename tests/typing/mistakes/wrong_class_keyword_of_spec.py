from konverge import Spec
from konverge.schema import Rule


class InboxSpec(Spec, rule=Rule("self.quota >= 1")):  # mistake
    quota: int
