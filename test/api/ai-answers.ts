/**
 * Sample data for tests of `Svc.AI`: a tool, requests to the providers, and responses of the OpenAI and Anthropic APIs, complete and as
 * server-sent events.
 */
import type { IncomingMessage } from "node:http";

export const KEY = "sk-canary-0123456789abcdefghijklmnop";
export const MANUAL = { active: true, triggers: [{ trigger: "manual" }], dependencies: ["svc-ai"] };
export const WEATHER = {
  name: "weather",
  description: "Of a place",
  parameters: { type: "object", properties: { place: { type: "string" } } },
};

export interface ProviderCall {
  path: string;
  headers: IncomingMessage["headers"];
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: each provider's API has another type
  body: any;
}

const sse = (events: object[], names = false) =>
  events
    .map((event) => `${names ? `event: ${(event as { type: string }).type}\n` : ""}data: ${JSON.stringify(event)}\n\n`)
    .join("");

export const OPENAI_ANSWER = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "gpt-4o-mini-2024-07-18",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello there", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
};

/** Returns OpenAI's sample answer as text, with `content` as its message. */
export const openAiAnswerWith = (content: string): string => {
  const [choice] = OPENAI_ANSWER.choices;
  return JSON.stringify({ ...OPENAI_ANSWER, choices: [{ ...choice, message: { role: "assistant", content } }] });
};
export const OPENAI_CALLS = {
  ...OPENAI_ANSWER,
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"place":"Bern"}' } }],
      },
      finish_reason: "tool_calls",
    },
  ],
};
const chunk = (delta: object, more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "gpt-4o-mini-2024-07-18",
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});
export const streamedText = (content: string): string => sse([chunk({ content })]);
export const OPENAI_CHUNKS = { end: `${sse([chunk({}, { finish_reason: "stop" })])}data: [DONE]\n\n` };
export const OPENAI_STREAM = `${sse([
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "Hel" }),
  chunk({ content: "lo" }),
  chunk({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "" } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"place":' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"Bern"}' } }] }),
  chunk({}, { finish_reason: "tool_calls" }),
  { id: "chatcmpl-1", object: "chat.completion.chunk", choices: [], usage: { prompt_tokens: 9, completion_tokens: 3 } },
])}data: [DONE]\n\n`;
/** Request that follows the first call of the tool WEATHER. */
export const ANTHROPIC_REQUEST = {
  model: "claude-sonnet-4-5",
  max_tokens: 1024,
  system: "Be brief.",
  messages: [
    { role: "user", content: "Hello" },
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "toolu_0", name: "weather", input: { place: "Bern" } }],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_0", content: "sunny" }] },
  ],
  tools: [{ name: "weather", description: "Of a place", input_schema: WEATHER.parameters }],
};
export const ANTHROPIC_ANSWER = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-5",
  content: [
    { type: "text", text: "Hello there" },
    { type: "tool_use", id: "toolu_1", name: "weather", input: { place: "Bern" } },
  ],
  stop_reason: "tool_use",
  usage: { input_tokens: 9, output_tokens: 3 },
};
export const ANTHROPIC_STREAM = sse(
  [
    {
      type: "message_start",
      message: { id: "msg_1", model: "claude-sonnet-4-5", usage: { input_tokens: 9, output_tokens: 1 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "ping" },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hel" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "lo" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", id: "toolu_1", name: "weather", input: {} },
    },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"place": "Be' } },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: 'rn"}' } },
    { type: "content_block_stop", index: 1 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 3 } },
    { type: "message_stop" },
  ],
  true,
);

/** Invalid fields of the setting `__ai`, each with the path that the error names. */
export const INVALID_SETTINGS = [
  [{ key: "" }, "__ai.key"],
  [{ provider: "other" }, "__ai.provider"],
  [{ baseUrl: "file:///etc/passwd" }, "__ai.baseUrl"],
  [{ baseUrl: "https://api.example.com/v1#models" }, "__ai.baseUrl"],
  [{ models: [] }, "__ai.models"],
  [{ dailyTokens: -1 }, "__ai.dailyTokens"],
] as const;
