/** Validates the options of `Svc.AI` calls. Each error message contains the path of the invalid field. */
import { describeValue, isObject } from "../describe-value.js";
import { createAiPolicyError } from "./failure.js";

export const AI_CALL_KINDS = ["completions", "embeddings", "image", "transcribe"] as const;
export type AiCallKind = (typeof AI_CALL_KINDS)[number];

export interface AiToolCall {
  id: string;
  name: string;
  arguments: unknown;
}

export interface CompletionMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  toolCalls: readonly AiToolCall[];
  toolCallId: string | null;
}

export interface AiTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface CompletionOptions {
  call: "completions";
  model: string | null;
  messages: readonly CompletionMessage[];
  tools: readonly AiTool[];
  maxTokens: number | null;
  temperature: number | null;
  responseFormat: Record<string, unknown> | null;
  stream: boolean;
}

export interface EmbeddingOptions {
  call: "embeddings";
  model: string | null;
  input: readonly string[];
}

export interface ImageOptions {
  call: "image";
  model: string | null;
  prompt: string;
  size: string | null;
}

export interface TranscribeOptions {
  call: "transcribe";
  model: string | null;
  file: { name: string; contentType: string; bytes: Uint8Array };
}

export type AiOptions = CompletionOptions | EmbeddingOptions | ImageOptions | TranscribeOptions;

const ITEMS_MAX = 1_000;
const MODEL_NAME_PATTERN = /^[\w.:/@-]{1,200}$/;
const TOOL_NAME_PATTERN = /^[\w-]{1,64}$/;
const ROLES: readonly unknown[] = ["system", "user", "assistant", "tool"];
const CONTENT_TYPE_PATTERN = /^[\w.+-]+\/[\w.+-]+$/;

const ALLOWED_FIELDS: Record<AiCallKind, readonly string[]> = {
  completions: ["model", "messages", "tools", "maxTokens", "temperature", "responseFormat", "stream"],
  embeddings: ["model", "input"],
  image: ["model", "prompt", "size"],
  transcribe: ["model", "file"],
};

const throwFieldError = (field: string, expected: string, value: unknown): never => {
  throw createAiPolicyError(`${field} must be ${expected} (got ${describeValue(value)})`);
};

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

function readText(value: unknown, field: string): string {
  return typeof value === "string" ? value : throwFieldError(field, "a text", value);
}

function readList(value: unknown, field: string): unknown[] {
  return Array.isArray(value) && value.length <= ITEMS_MAX
    ? value
    : throwFieldError(field, `an array of at most ${ITEMS_MAX} items`, value);
}

function readObject(value: unknown, field: string, fields: readonly string[]): Record<string, unknown> {
  if (!isObject(value)) return throwFieldError(field, "an object", value);
  const unknownField = Object.keys(value).find((name) => !fields.includes(name));
  if (unknownField !== undefined)
    throw createAiPolicyError(`${field} can contain only ${fields.join(", ")} (got ${describeValue(unknownField)})`);
  return value;
}

function readToolCall(value: unknown, field: string): AiToolCall {
  const { id, name, arguments: input } = readObject(value, field, ["id", "name", "arguments"]);
  return { id: readText(id, `${field}.id`), name: readText(name, `${field}.name`), arguments: input ?? {} };
}

function readMessage(value: unknown, field: string): CompletionMessage {
  const { role, content, toolCalls, toolCallId } = readObject(value, field, [
    "role",
    "content",
    "toolCalls",
    "toolCallId",
  ]);
  if (!ROLES.includes(role)) throwFieldError(`${field}.role`, "system, user, assistant or tool", role);
  const calls = isAbsent(toolCalls) ? [] : readList(toolCalls, `${field}.toolCalls`);
  if (role === "tool" && isAbsent(toolCallId))
    throwFieldError(`${field}.toolCallId`, "the ID of a tool call", toolCallId);
  return {
    role: role as CompletionMessage["role"],
    // A message with tool calls may have no text.
    content: calls.length > 0 && isAbsent(content) ? "" : readText(content, `${field}.content`),
    toolCalls: calls.map((call, index) => readToolCall(call, `${field}.toolCalls[${index}]`)),
    toolCallId: isAbsent(toolCallId) ? null : readText(toolCallId, `${field}.toolCallId`),
  };
}

function readTool(value: unknown, field: string): AiTool {
  const { name, description = "", parameters } = readObject(value, field, ["name", "description", "parameters"]);
  if (typeof name !== "string" || !TOOL_NAME_PATTERN.test(name))
    throwFieldError(`${field}.name`, "1 to 64 letters, digits, _ and -", name);
  if (!isAbsent(parameters) && !isObject(parameters))
    throwFieldError(`${field}.parameters`, "an object (a JSON Schema)", parameters);
  const schema = (parameters ?? { type: "object", properties: {} }) as Record<string, unknown>;
  return { name: name as string, description: readText(description, `${field}.description`), parameters: schema };
}

function readCompletionOptions(options: Record<string, unknown>, model: string | null): CompletionOptions {
  const { messages, tools, maxTokens = null, temperature = null, responseFormat = null, stream = false } = options;
  const input = readList(messages, "messages");
  if (input.length === 0) throwFieldError("messages", "an array of at least one message", messages);
  const isCount = Number.isSafeInteger(maxTokens) && (maxTokens as number) > 0 && (maxTokens as number) <= 1_000_000;
  if (maxTokens !== null && !isCount) throwFieldError("maxTokens", "a whole number from 1 to 1000000", maxTokens);
  const isValidTemperature = typeof temperature === "number" && temperature >= 0 && temperature <= 2;
  if (temperature !== null && !isValidTemperature) throwFieldError("temperature", "a number from 0 to 2", temperature);
  if (responseFormat !== null && !isObject(responseFormat))
    throwFieldError("responseFormat", "an object", responseFormat);
  if (typeof stream !== "boolean") throwFieldError("stream", "true or false", stream);
  return {
    call: "completions",
    model,
    messages: input.map((message, index) => readMessage(message, `messages[${index}]`)),
    tools: isAbsent(tools) ? [] : readList(tools, "tools").map((tool, index) => readTool(tool, `tools[${index}]`)),
    maxTokens: maxTokens as number | null,
    temperature: temperature as number | null,
    responseFormat: responseFormat as Record<string, unknown> | null,
    stream: stream as boolean,
  };
}

function readTranscribeOptions(options: Record<string, unknown>, model: string | null): TranscribeOptions {
  const { name = "audio", contentType, data } = readObject(options["file"], "file", ["name", "contentType", "data"]);
  const isContentType = typeof contentType === "string" && CONTENT_TYPE_PATTERN.test(contentType);
  if (!isContentType) throwFieldError("file.contentType", "a content type such as audio/mpeg", contentType);
  const bytes = Buffer.from(readText(data, "file.data"), "base64");
  if (bytes.length === 0) throwFieldError("file.data", "bytes in base64", data);
  const plainName = readText(name, "file.name")
    .replace(/[^\w.-]/g, "_")
    .slice(0, 100);
  return { call: "transcribe", model, file: { name: plainName || "audio", contentType: contentType as string, bytes } };
}

/** Validates the options of a call. @throws AiError POLICY whose message contains the path of the invalid field */
export function parseAiOptions(call: AiCallKind, value: unknown): AiOptions {
  const options = readObject(value ?? {}, "options", ALLOWED_FIELDS[call]);
  const { model: requestedModel = null } = options;
  if (requestedModel !== null && (typeof requestedModel !== "string" || !MODEL_NAME_PATTERN.test(requestedModel)))
    throwFieldError("model", "the name of a model: 1 to 200 letters, digits and . : / @ _ -", requestedModel);
  const model = requestedModel as string | null;
  if (call === "completions") return readCompletionOptions(options, model);
  if (call === "transcribe") return readTranscribeOptions(options, model);
  if (call === "image") {
    const { prompt, size = null } = options;
    if (size !== null && (typeof size !== "string" || !/^\d{2,5}x\d{2,5}$/.test(size)))
      return throwFieldError("size", "width and height in pixels, each with 2 to 5 digits, such as 1024x1024", size);
    return { call, model, prompt: readText(prompt, "prompt"), size };
  }
  const { input } = options;
  const texts = typeof input === "string" ? [input] : readList(input, "input");
  if (texts.length === 0) throwFieldError("input", "a text or an array of texts, and not empty", input);
  return { call, model, input: texts.map((text, index) => readText(text, `input[${index}]`)) };
}
