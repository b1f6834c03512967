from konverge import Operator
from konverge_cluster.testing import Simulation, simulate
from mailboxes.service import PostOffice


def build(post_office: PostOffice) -> Operator:
    return Operator(name="mail-operator", controllers=(), shared=(post_office.open,))


async def scenario(sim: Simulation[str]) -> None:
    assert not sim.external


simulate(build, external=PostOffice)(scenario)  # mistake
