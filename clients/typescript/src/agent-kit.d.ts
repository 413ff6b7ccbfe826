// What src/agentkit.ts needs of @inngest/agent-kit, so that building takes none of its hundreds of
// dependencies. compat/agentkit checks the result against the real types.

declare module "@inngest/agent-kit" {
  export type Message = TextMessage | ToolCallMessage | ToolResultMessage;

  export interface TextMessage {
    type: "text";
    role: "system" | "user" | "assistant";
    content: string | { type: "text"; text: string }[];
    stop_reason?: "tool" | "stop";
  }

  export interface ToolMessage {
    type: "tool";
    id: string;
    name: string;
    input: Record<string, unknown>;
  }

  export interface ToolCallMessage {
    type: "tool_call";
    role: "user" | "assistant";
    tools: ToolMessage[];
    stop_reason: "tool";
  }

  export interface ToolResultMessage {
    type: "tool_result";
    role: "tool_result";
    tool: ToolMessage;
    content: unknown;
    stop_reason: "tool";
  }

  export class AgentResult {
    constructor(
      agentName: string,
      output: Message[],
      toolCalls: ToolResultMessage[],
      createdAt: Date,
      prompt?: Message[],
      history?: Message[],
      raw?: string,
      id?: string,
    );
    agentName: string;
    output: Message[];
    toolCalls: ToolResultMessage[];
    createdAt: Date;
    id?: string | undefined;
    get checksum(): string;
  }

  export type StateData = Record<string, any>;

  export class State<T extends StateData> {
    data: T;
    threadId?: string | undefined;
  }

  interface Context<T extends StateData> {
    state: State<T>;
    input: string;
    threadId?: string;
  }

  export interface HistoryConfig<T extends StateData> {
    createThread?: (context: Context<T>) => Promise<{ threadId: string }>;
    get?: (context: Context<T>) => Promise<AgentResult[]>;
    appendUserMessage?: (
      context: Context<T> & { userMessage: { id: string; content: string; role: "user"; timestamp: Date } },
    ) => Promise<void>;
    appendResults?: (context: Context<T> & { newResults: AgentResult[] }) => Promise<void>;
  }
}
