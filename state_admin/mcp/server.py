"""The MCP server: its name and instructions, and its handlers."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import mcp_types as types
from django.conf import settings
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from project import tracing
from state_admin import __version__
from state_admin.services.errors import Problem
from state_admin.streams.hub import Hub

from . import calls, gate, resources
from .host import Caller, Host
from .listening import Listening
from .mount import Mount
from .tools import TOOLS, Tool

Context = ServerRequestContext[Any, Request]

# A larger body is parsed in a thread.
_SMALL = 64 * 1024
_INSTRUCTIONS = """\
Commonhold stores the shared state of agents: versioned JSON values in typed namespaces, and threads, \
runs and tickets. Other agents and people change it concurrently. Read before you write, send the \
version you read as expected_version, and state a reason. Errors are problem documents: `errors` \
lists the arguments that are not valid, `hint` says what to do."""


def build(host: Host, hub: Hub) -> Mount:
    """The application that serves /mcp."""
    server: Server[Any] = Server(
        "commonhold",
        version=__version__,
        title="Commonhold",
        instructions=_INSTRUCTIONS,
        website_url=settings.SITE_URL,
        cache_hints={
            "tools/list": CacheHint(300_000),
            "resources/templates/list": CacheHint(300_000),
        },
        get_tool_input_schema=_schema_of,
        **_handlers(host, Listening(host, hub)),
    )
    # That of the SDK makes spans with the texts of errors and the names that callers send.
    server.middleware.clear()
    return Mount(server, partial(gate.check, host), max_body=settings.MAX_BODY_BYTES)


def _handlers(host: Host, listening: Listening) -> dict[str, Any]:
    async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
        actor = _caller(ctx).actor
        return types.ListToolsResult(
            tools=[_show(tool) for tool in TOOLS.values() if actor.may(tool.role)]
        )

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool, caller = TOOLS.get(params.name), _caller(ctx)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.name}
        with tracing.span(f"execute_tool {tool.name}", attributes):
            return await call(ctx, tool, caller)

    async def call(ctx: Context, tool: Tool, caller: Caller) -> types.CallToolResult:
        body = await _request(ctx).body()

        def read() -> Any:
            arguments = calls.arguments_in(body)
            calls.check_arguments(tool, arguments)
            request = calls.request_of(tool, arguments, caller)
            return *request, calls.does_write(tool, arguments)

        try:
            scope, content, writes = read() if len(body) <= _SMALL else await host.in_thread(read)
        except Problem as problem:
            return calls.failure_of(problem, caller.actor.request_id)
        return calls.result_of(tool, await host.ask(scope, content), writes)

    async def list_resources(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        caller, cursor = _caller(ctx), params.cursor if params else None
        return await host.in_thread(lambda: resources.list_entries(caller, cursor))

    async def list_templates(ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(
        ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        answer = await host.ask(resources.read_request(params.uri, _caller(ctx)))
        return resources.read_result(params.uri, answer)

    async def listen(
        ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        size = len(await _request(ctx).body())
        return await listening.listen(ctx, params, _caller(ctx), size)

    return {
        "on_list_tools": list_tools,
        "on_call_tool": call_tool,
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
        "on_subscriptions_listen": listen,
    }


def _request(ctx: Context) -> Request:
    return cast(Request, ctx.request)  # the transport is always HTTP


def _caller(ctx: Context) -> Caller:
    caller: Caller = _request(ctx).scope[Caller.KEY]
    return caller


def _schema_of(name: str) -> dict[str, Any] | None:
    return TOOLS[name].takes if name in TOOLS else None


def _show(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.operation.summary,
        description=tool.description,
        input_schema=tool.takes,
        output_schema=tool.answers,
        annotations=types.ToolAnnotations(
            title=tool.operation.summary,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads or tool.name == "delete_state",
            open_world_hint=False,
        ),
    )
