"""A web service: one route answers with JSON, one streams events as they happen.

uvicorn fastapi_sse:app
curl -N 'http://127.0.0.1:8000/stream?question=Hello'
"""

import os
from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from agent_runtime import Agent, RunResult, to_json


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


agent = Agent(os.environ.get("MODEL", "local"), tools=[add])
app = FastAPI()


@app.get("/ask")
async def ask(question: str) -> RunResult:
    return await agent.run_async(question)


@app.get("/stream")
async def stream(question: str) -> StreamingResponse:
    async def events() -> AsyncIterator[str]:
        async for event in agent.stream_async(question):
            yield f"event: {event['type']}\ndata: {to_json(event)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
