/** Adapter for Anthropic's Messages API: builds requests, and parses responses and streams. Does not send the requests. */
import { type AiCompletion, type AiProviderApi, buildJsonRequest, type CompletionEventReader } from "./answer.js";
import { createAiPolicyError } from "./failure.js";
import type { AiOptions, CompletionMessage, CompletionOptions } from "./options.js";
import {
  createIncompleteStreamError,
  createMalformedResponseError,
  createReportedFailureError,
  getValueAtPath,
  parseAnswerPartIndex,
  parseJsonObject,
  parseToolArguments,
  toCountOrZero,
  toTextOrEmpty,
} from "./provider-json.js";

const API_VERSION = "2023-06-01";
/** Default of `max_tokens` (maximum number of tokens of an answer): Anthropic's API requires this field. */
const DEFAULT_MAX_TOKENS = 1_024;

/** Converts one message. The API expects a tool result as a block of a user message. */
function convertMessage({ role, content, toolCalls, toolCallId }: CompletionMessage) {
  if (role === "tool") return { role: "user", content: [{ type: "tool_result", tool_use_id: toolCallId, content }] };
  if (toolCalls.length === 0) return { role, content };
  const toolUses = toolCalls.map(({ id, name, arguments: input }) => ({
    type: "tool_use",
    id,
    name,
    // The API expects an object. Messages written for OpenAI's API contain the arguments as JSON text.
    input: typeof input === "string" ? parseToolArguments(input) : input,
  }));
  return { role, content: [...(content === "" ? [] : [{ type: "text", text: content }]), ...toolUses] };
}

/** Converts all messages. Puts consecutive tool results into one message, as the API expects for tool calls of the same answer. */
function convertMessages(messages: readonly CompletionMessage[]): object[] {
  const mergedMessages: { role: string; content: unknown }[] = [];
  for (const message of messages.filter(({ role }) => role !== "system").map(convertMessage)) {
    const last = mergedMessages.at(-1);
    if (last?.role === message.role && Array.isArray(last.content) && Array.isArray(message.content)) {
      last.content.push(...message.content);
    } else mergedMessages.push(message);
  }
  return mergedMessages;
}

function buildRequestBody(options: CompletionOptions, model: string): object {
  const { messages, tools, maxTokens, temperature, stream } = options;
  const system = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  return {
    model,
    max_tokens: maxTokens ?? DEFAULT_MAX_TOKENS,
    messages: convertMessages(messages),
    ...(system.length > 0 && { system: system.join("\n\n") }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    }),
    ...(temperature !== null && { temperature }),
    ...(stream && { stream: true }),
  };
}

function readCompletion(body: Record<string, unknown>, model: string): AiCompletion {
  const content = getValueAtPath(body, "content");
  if (!Array.isArray(content)) throw createMalformedResponseError("content");
  const texts = content
    .filter((block) => getValueAtPath(block, "type") === "text")
    .map((block) => toTextOrEmpty(getValueAtPath(block, "text")));
  const toolUses = content.filter((block) => getValueAtPath(block, "type") === "tool_use");
  return {
    message: { role: "assistant", content: texts.join("") },
    toolCalls: toolUses.map((use) => ({
      id: toTextOrEmpty(getValueAtPath(use, "id")),
      name: toTextOrEmpty(getValueAtPath(use, "name")),
      arguments: getValueAtPath(use, "input") ?? {},
    })),
    usage: {
      inputTokens: toCountOrZero(getValueAtPath(body, "usage", "input_tokens")),
      outputTokens: toCountOrZero(getValueAtPath(body, "usage", "output_tokens")),
    },
    model: toTextOrEmpty(getValueAtPath(body, "model")) || model,
    finishReason: toTextOrEmpty(getValueAtPath(body, "stop_reason")),
  };
}

interface ContentBlock {
  type: string;
  id: string;
  name: string;
  text: string;
}

/** Collects the events of a stream. `message_start` has the number of input tokens, `message_delta` that of output tokens. */
function createEventReader(model: string): CompletionEventReader {
  const blocks: ContentBlock[] = [];
  const usage = { inputTokens: 0, outputTokens: 0 };
  let [content, finishReason, answeringModel, isComplete] = ["", "", model, false];
  let characters = 0;

  function startBlock(event: unknown, index: number): void {
    const block = getValueAtPath(event, "content_block");
    const [kind, id, name] = ["type", "id", "name"].map((field) => toTextOrEmpty(getValueAtPath(block, field)));
    blocks[index] = { type: kind!, id: id!, name: name!, text: "" };
  }

  return {
    push(event) {
      const type = getValueAtPath(event, "type");
      const index = parseAnswerPartIndex(getValueAtPath(event, "index"));
      if (type === "message_start") {
        answeringModel = toTextOrEmpty(getValueAtPath(event, "message", "model")) || answeringModel;
        usage.inputTokens = toCountOrZero(getValueAtPath(event, "message", "usage", "input_tokens"));
      } else if (type === "content_block_start") startBlock(event, index);
      else if (type === "message_delta") {
        finishReason = toTextOrEmpty(getValueAtPath(event, "delta", "stop_reason")) || finishReason;
        usage.outputTokens = toCountOrZero(getValueAtPath(event, "usage", "output_tokens")) || usage.outputTokens;
      } else if (type === "message_stop") isComplete = true;
      else if (type === "error") throw createReportedFailureError();
      const addedText =
        type === "content_block_delta" ? toTextOrEmpty(getValueAtPath(event, "delta", "partial_json")) : "";
      if (blocks[index]) blocks[index].text += addedText;
      const text = type === "content_block_delta" ? toTextOrEmpty(getValueAtPath(event, "delta", "text")) : "";
      content += text;
      characters += addedText.length + text.length;
      return text;
    },
    characterCount: () => characters,
    finish() {
      if (!isComplete) throw createIncompleteStreamError("message_stop");
      const toolUses = blocks.filter((block) => block?.type === "tool_use");
      const toolCalls = toolUses.map(({ id, name, text }) => ({ id, name, arguments: parseToolArguments(text) }));
      return { message: { role: "assistant", content }, toolCalls, usage, model: answeringModel, finishReason };
    },
  };
}

export const ANTHROPIC_API: AiProviderApi = {
  buildRequest(input, model, key) {
    const options = input as AiOptions;
    if (options.call !== "completions")
      throw createAiPolicyError(`the provider "anthropic" does not support ${options.call}`);
    if (options.responseFormat !== null)
      throw createAiPolicyError('the provider "anthropic" does not support "responseFormat"');
    const headers = { "x-api-key": key, "anthropic-version": API_VERSION };
    return buildJsonRequest("/v1/messages", headers, buildRequestBody(options, model));
  },
  readResponse: (_options, model, body) => readCompletion(parseJsonObject(body), model),
  createEventReader: createEventReader,
};
