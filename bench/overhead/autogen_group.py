"""The scripted group on AutoGen's distributed runtime: a gRPC host, an agent per process, and a process that runs the loop as our
gateway does. Nothing is kept on disk: the runtime has no such thing."""

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass

from autogen_core import AgentId, MessageContext, RoutedAgent, rpc
from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

import script

ROLES = ["plan", "tool", "reflect"]


@dataclass
class Plan:
    question: str
    history: list
    steps: int


@dataclass
class Thought:
    thought: str
    tool: str


@dataclass
class Parameterize:
    question: str
    history: list
    thought: str
    tool: str


@dataclass
class Action:
    tool: str
    params: str


@dataclass
class Observation:
    text: str


@dataclass
class Reflect:
    question: str
    history: list


@dataclass
class Reflection:
    thought: str
    verdict: str


class PlanAgent(RoutedAgent):
    @rpc
    async def plan(self, message: Plan, ctx: MessageContext) -> Thought:
        return Thought(*script.planned(message.history, message.steps))


class ToolAgent(RoutedAgent):
    @rpc
    async def parameterize(self, message: Parameterize, ctx: MessageContext) -> Action:
        return Action(message.tool, script.parameters(message.history))

    @rpc
    async def execute(self, message: Action, ctx: MessageContext) -> Observation:
        return Observation(script.executed(message.params))


class ReflectAgent(RoutedAgent):
    @rpc
    async def reflect(self, message: Reflect, ctx: MessageContext) -> Reflection:
        return Reflection(*script.VERDICT)


AGENTS = {"plan": PlanAgent, "tool": ToolAgent, "reflect": ReflectAgent}


async def runtime(address: str) -> GrpcWorkerAgentRuntime:
    from autogen_core._serialization import try_get_known_serializers_for_type

    worker = GrpcWorkerAgentRuntime(host_address=address)
    for kind in (Plan, Thought, Parameterize, Action, Observation, Reflect, Reflection):
        worker.add_message_serializer(try_get_known_serializers_for_type(kind))
    await worker.start()
    return worker


async def agent(role: str, address: str) -> None:
    """Serves until its standard input ends."""
    worker = await runtime(address)
    kind = AGENTS[role]
    await kind.register(worker, role, lambda: kind(role))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await worker.stop()


async def serve_host(address: str) -> None:
    host = GrpcWorkerAgentRuntimeHost(address=address)
    host.start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await host.stop(grace=1)


def process(role: str, address: str, args) -> subprocess.Popen:
    command = [sys.executable, __file__, "--role", role, "--host", address, "--steps", args.steps, "--tasks", args.tasks]
    command += ["--at-once", args.at_once, "--seconds", args.seconds]
    child = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "ready", f"`{role}` does not start"
    return child


async def loop(worker: GrpcWorkerAgentRuntime, number: int, steps: int) -> list:
    """One task; the times of its thoughts."""
    plan, tool, reflect = (AgentId(role, "default") for role in ROLES)
    question, history, thoughts = f"What does the last page say? ({number})", [], []
    while True:
        thought = await worker.send_message(Plan(question, history, steps), plan)
        thoughts.append(time.perf_counter())
        action = await worker.send_message(Parameterize(question, history, thought.thought, thought.tool), tool)
        if thought.tool == "Finish":
            reflection = await worker.send_message(Reflect(question, history), reflect)
            assert reflection.verdict == "right"
            return thoughts
        observation = await worker.send_message(action, tool)
        history = [*history, [thought.thought, action.tool, action.params, observation.text]]


async def main() -> None:
    args = script.arguments()
    if args.role == "host":
        return await serve_host(args.host)
    if args.role:
        return await agent(args.role, args.host)
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{s.getsockname()[1]}"
    children = []
    try:
        for role in ["host", *ROLES]:
            children.append(process(role, address, args))
        worker = await runtime(address)
        counts = [int(n) for n in args.at_once.split(",") if n]
        await script.measure(lambda number: loop(worker, number, args.steps), args.steps, args.tasks, counts, args.seconds)
        await worker.stop()
    finally:
        for child in reversed(children):
            child.stdin.close()
        for child in children:
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()


if __name__ == "__main__":
    asyncio.run(main())
