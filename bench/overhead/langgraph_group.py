"""The scripted group as a LangGraph graph in one process, with a checkpoint after every node: in memory, or in a SQLite file, written
before the next node starts (`durability="sync"`), as our gateway appends before it acts."""

import asyncio
import operator
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

import script


class State(TypedDict):
    question: str
    history: Annotated[list, operator.add]
    thought: str
    tool: str
    params: str
    verdict: str
    thoughts: Annotated[list, operator.add]


def graph(steps: int, saver):
    async def plan(state: State) -> dict:
        thought, tool = script.planned(state["history"], steps)
        return {"thought": thought, "tool": tool, "thoughts": [time.perf_counter()]}

    async def parameterize(state: State) -> dict:
        return {"params": script.parameters(state["history"])}

    async def execute(state: State) -> dict:
        step = [state["thought"], state["tool"], state["params"], script.executed(state["params"])]
        return {"history": [step]}

    async def reflect(state: State) -> dict:
        return {"verdict": script.VERDICT[1]}

    builder = StateGraph(State)
    for node in (plan, parameterize, execute, reflect):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "parameterize")
    builder.add_conditional_edges("parameterize", lambda s: "reflect" if s["tool"] == "Finish" else "execute", ["reflect", "execute"])
    builder.add_edge("execute", "plan")
    builder.add_edge("reflect", END)
    return builder.compile(checkpointer=saver)


@asynccontextmanager
async def savers(keep: str):
    """Where checkpoints go."""
    if keep == "memory":
        yield InMemorySaver()
        return
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncSqliteSaver.from_conn_string(str(Path(folder) / "checkpoints.sqlite")) as saver:
            yield saver


async def main() -> None:
    args = script.arguments()
    async with savers(args.keep) as saver:
        app = graph(args.steps, saver)

        async def ask(number: int) -> list:
            config = {"configurable": {"thread_id": str(number)}, "recursion_limit": 4 * args.steps + 10}
            question = {"question": "What does the last page say?", "history": [], "thoughts": []}
            state = await app.ainvoke(question, config, durability="sync")
            assert state["verdict"] == "right"
            return state["thoughts"]

        counts = [int(n) for n in args.at_once.split(",") if n]
        await script.measure(ask, args.steps, args.tasks, counts, args.seconds)


if __name__ == "__main__":
    asyncio.run(main())
