from konverge import Context, CustomResource, ObjectMeta, Operator, Spec, Status, controller_for
from konverge.k8s.core.v1 import ConfigMap


class GreetingSpec(Spec):
    text: str = "hello"


class GreetingStatus(Status):
    written: str = ""


class Greeting(CustomResource[GreetingSpec, GreetingStatus], group="example.com", version="v1"):
    """A text in a ConfigMap."""


@controller_for(Greeting).owns(ConfigMap)
async def greetings(greeting: Greeting, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=greeting.name), data={"text": greeting.spec.text}))
    greeting.status.written = greeting.spec.text
    await ctx.update_status(greeting)


operator = Operator(name="greeting-operator", controllers=(greetings,))
