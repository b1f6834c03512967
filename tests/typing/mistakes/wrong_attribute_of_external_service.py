from konverge_cluster.testing import Simulation
from mailboxes.service import PostOffice


async def scenario(sim: Simulation[PostOffice]) -> None:
    assert sim.external.letter == []  # mistake
