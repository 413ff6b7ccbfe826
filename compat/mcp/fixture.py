"""The server that the conformance suite describes, on the mount of Commonhold: its tools, prompts
and resources have nothing to do with state. Run, with the packages of the server: python fixture.py <port>."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import mcp.types as t
import uvicorn
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

sys.path.insert(0, str(Path(__file__).parents[2]))
from state_admin.mcp.mount import Mount
from state_admin.services.errors import Forbidden, Problem
from state_admin.services.problem_statuses import MisdirectedRequest

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
).decode()

server = MCPServer(
    "conformance", version="1", request_state_security=RequestStateSecurity(keys=[bytes(32)])
)


class Memory(EventStore):
    """Stores every event of every stream, so that a client can resume."""

    def __init__(self) -> None:
        self.events: list[tuple[StreamId, t.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: t.JSONRPCMessage | None) -> EventId:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        place = int(last_event_id)
        if not 0 < place <= len(self.events):
            return None
        stream = self.events[place - 1][0]
        for number, (owner, message) in enumerate(self.events, 1):
            if number > place and owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


# Results of tools ---------------------------------------------------------------------------


@server.tool()
def test_simple_text() -> str:
    return "This is a simple text response for testing."


def image() -> t.ImageContent:
    return t.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, mime_type: str, text: str) -> t.EmbeddedResource:
    held = t.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return t.EmbeddedResource(type="resource", resource=held)


@server.tool()
def test_image_content() -> list[t.ImageContent]:
    return [image()]


@server.tool()
def test_audio_content() -> list[t.AudioContent]:
    return [t.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[t.EmbeddedResource]:
    text = "This is an embedded resource content."
    return [embedded("test://embedded-resource", "text/plain", text)]


@server.tool()
def test_multiple_content_types() -> list[t.TextContent | t.ImageContent | t.EmbeddedResource]:
    text = t.TextContent(type="text", text="Multiple content types test:")
    held = embedded(
        "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
    )
    return [text, image(), held]


@server.tool()
def test_error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    for step in (0, 50, 100):
        await ctx.report_progress(step, 100, f"step {step}")
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    await ctx.info("before")
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    await ctx.info("after")
    return "the stream was left and found again"


@server.tool()
def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
) -> str:
    return region


@server.tool(name="json_schema_2020_12_tool")
def schema_keywords() -> str:
    return "its input schema is what is tested"


server._tool_manager._tools["json_schema_2020_12_tool"].parameters = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


# Requests to the client, with sessions -------------------------------------------------------


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    asked = t.SamplingMessage(role="user", content=t.TextContent(type="text", text=prompt))
    said = await ctx.session.create_message(
        messages=[asked], max_tokens=100, related_request_id=ctx.request_id
    )
    return f"LLM response: {getattr(said.content, 'text', '')}"


class Reply(BaseModel):
    response: str


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


def titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


class Choices(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": ["one", "two"]})
    titledSingle: str = Field(json_schema_extra={"oneOf": titled(("a", "Alpha"), ("b", "Beta"))})
    untitledMulti: list[str] = Field(
        json_schema_extra={"items": {"type": "string", "enum": ["one", "two"]}}
    )
    titledMulti: list[str] = Field(
        json_schema_extra={"items": {"anyOf": titled(("a", "Alpha"), ("b", "Beta"))}}
    )
    legacyEnum: str = Field(json_schema_extra={"enum": ["one", "two"], "enumNames": ["One", "Two"]})


async def elicit(ctx: Context, message: str, form: type[BaseModel]) -> str:
    said = await ctx.elicit(message=message, schema=form)
    content = said.data.model_dump_json() if said.action == "accept" else "{}"
    return f"action={said.action}, content={content}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    return await elicit(ctx, message, Reply)


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    return await elicit(ctx, "Who are you?", Defaults)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    return await elicit(ctx, "Choose", Choices)


# Requests to the client, without sessions: it repeats the call with the responses --------------


def ask_name(message: str = "What is your name?", field: str = "name") -> t.ElicitRequest:
    form = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return t.ElicitRequest(params=t.ElicitRequestFormParams(message=message, requested_schema=form))


def ask_model(text: str) -> t.CreateMessageRequest:
    asked = t.SamplingMessage(role="user", content=t.TextContent(type="text", text=text))
    return t.CreateMessageRequest(
        params=t.CreateMessageRequestParams(messages=[asked], max_tokens=50)
    )


def need(state: str | None = None, **requests: Any) -> t.InputRequiredResult:
    return t.InputRequiredResult(input_requests=requests, request_state=state)


def entered(ctx: Context, name: str) -> dict[str, Any]:
    """Return the user's input in the form `name`, if there is any."""
    said = (ctx.input_responses or {}).get(name)
    return dict(said.content or {}) if isinstance(said, t.ElicitResult) else {}


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | t.InputRequiredResult:
    given = entered(ctx, "user_name")
    return f"Hello, {given['name']}!" if "name" in given else need(user_name=ask_name())


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str | t.InputRequiredResult:
    said = (ctx.input_responses or {}).get("capital_question")
    if isinstance(said, t.CreateMessageResult):
        return f"The model said: {getattr(said.content, 'text', '')}"
    return need(capital_question=ask_model("What is the capital of France?"))


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | t.InputRequiredResult:
    said = (ctx.input_responses or {}).get("client_roots")
    if isinstance(said, t.ListRootsResult):
        return f"{len(said.roots)} roots"
    return need(client_roots=t.ListRootsRequest())


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str | t.InputRequiredResult:
    if ctx.request_state == "first" and "confirm" in (ctx.input_responses or {}):
        return "state-ok"
    return need("first", confirm=ask_name("Please confirm", "ok"))


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str | t.InputRequiredResult:
    if {"user_name", "greeting", "client_roots"} <= set(ctx.input_responses or {}):
        return "all there"
    return need(
        "several",
        user_name=ask_name(),
        greeting=ask_model("Greet"),
        client_roots=t.ListRootsRequest(),
    )


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | t.InputRequiredResult:
    state = json.loads(ctx.request_state or '{"round": 0}')
    if state["round"] == 2 and "color" in entered(ctx, "step2"):
        return f"{state['name']} likes {entered(ctx, 'step2')['color']}"
    if state["round"] == 1 and "name" in entered(ctx, "step1"):
        name = entered(ctx, "step1")["name"]
        known = json.dumps({"round": 2, "name": name})
        return need(known, step2=ask_name("What is your favourite color?", "color"))
    return need('{"round": 1}', step1=ask_name())


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str | t.InputRequiredResult:
    if ctx.request_state:
        return "state-ok"
    return need("sealed", confirm=ask_name("Please confirm", "ok"))


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> t.InputRequiredResult:
    able = ctx.client_capabilities
    requests: dict[str, Any] = {}
    if able is None or able.sampling is not None:
        requests["sample"] = ask_model("Say hello")
    if able is None or able.elicitation is not None:
        requests["ask"] = ask_name()
    return need("able", **requests)


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        missing = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", missing)
    return "able"


# Changes -----------------------------------------------------------------------------------


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    await ctx.notify_tools_changed()
    return "told"


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    await ctx.notify_prompts_changed()
    return "told"


# Resources and prompts -----------------------------------------------------------------------


@server.resource("test://static-text")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # the name in the template
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource")
def watched() -> str:
    return "watched"


def said(content: Any) -> UserMessage:
    if isinstance(content, str):
        content = t.TextContent(type="text", text=content)
    return UserMessage(role="user", content=content)


@server.prompt()
def test_simple_prompt() -> list[UserMessage]:
    return [said("This is a simple prompt for testing.")]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    return [said(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
    held = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [said(held), said("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    return [said(image()), said("Please analyze the image above.")]


@server.prompt()
async def test_input_required_result_prompt(
    ctx: Context,
) -> list[UserMessage] | t.InputRequiredResult:
    given = entered(ctx, "user_context")
    if "context" in given:
        return [said(f"Use this: {given['context']}")]
    return need(user_context=ask_name("What context?", "context"))


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> t.Completion:
    return t.Completion(values=[], total=0, has_more=False)


async def agree(ctx: Any, params: Any) -> t.EmptyResult:
    return t.EmptyResult()


# Each needs a description; the name is sufficient here.
for named in (*server._tool_manager._tools.values(), *server._prompt_manager._prompts.values()):
    named.description = named.name.replace("_", " ")
low = server._lowlevel_server
low.add_request_handler("logging/setLevel", t.SetLevelRequestParams, agree)
low.add_request_handler("resources/subscribe", t.SubscribeRequestParams, agree)
low.add_request_handler("resources/unsubscribe", t.UnsubscribeRequestParams, agree)


async def only_local(scope: Any) -> Any:
    """A gate like that of Commonhold, without tokens."""
    headers = {name: text.decode("latin-1") for name, text in scope["headers"]}
    host, origin = headers.get(b"host", ""), headers.get(b"origin")
    if host.rpartition(":")[0] not in ("localhost", "127.0.0.1"):
        return Refused(MisdirectedRequest("the host is not served here"))
    if origin not in (None, f"http://{host}"):
        return Refused(Forbidden("requests from this origin are not permitted"))
    return None


class Refused:
    headers: dict[str, str] = {}
    request_id = "conformance"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


mount = Mount(low, only_local, max_body=1 << 20, sessions=True)
mount.manager.event_store = Memory()
mount.manager.retry_interval = 100

if __name__ == "__main__":
    # httptools, the other parser of uvicorn, does not remove white space after the value of a header.
    options = {"host": "127.0.0.1", "http": "h11", "log_level": "error", "lifespan": "off"}
    uvicorn.run(mount, port=int(sys.argv[1]), **options)
