from konverge import controller_for
from mailboxes.api import Mailbox
from mailboxes.operator import of_the_system

controller_for(Mailbox).predicate(of_the_system)  # mistake
