from konverge import controller_for
from konverge.k8s.core.v1 import ConfigMap
from mailboxes.api import Mailbox

controller_for(Mailbox).owns(ConfigMap, predicate="app=mail")  # mistake
