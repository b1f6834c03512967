from konverge.k8s.core.v1 import ConfigMap
from konverge.triggers import to_keys
from mailboxes.operator import mailboxes_of

to_keys(mailboxes_of, ConfigMap)  # mistake
