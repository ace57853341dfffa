/** Validates the options of `Svc.AI` calls. Each error message contains the path of the invalid field. */
import { describeValue, isObject } from "../described.js";
import { policyError } from "./failure.js";

export const AI_CALLS = ["completions", "embeddings", "image", "transcribe"] as const;
export type AiCall = (typeof AI_CALLS)[number];

export interface ToolCall {
  id: string;
  name: string;
  arguments: unknown;
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  toolCalls: readonly ToolCall[];
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
  messages: readonly Message[];
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
const NAME = /^[\w.:/@-]{1,200}$/;
const TOOL_NAME = /^[\w-]{1,64}$/;
const ROLES: readonly unknown[] = ["system", "user", "assistant", "tool"];
const CONTENT_TYPE = /^[\w.+-]+\/[\w.+-]+$/;

const FIELDS: Record<AiCall, readonly string[]> = {
  completions: ["model", "messages", "tools", "maxTokens", "temperature", "responseFormat", "stream"],
  embeddings: ["model", "input"],
  image: ["model", "prompt", "size"],
  transcribe: ["model", "file"],
};

const refuseField = (field: string, expected: string, value: unknown): never => {
  throw policyError(`${field} must be ${expected} (got ${describeValue(value)})`);
};

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;

function textIn(value: unknown, field: string): string {
  return typeof value === "string" ? value : refuseField(field, "a text", value);
}

function readList(value: unknown, field: string): unknown[] {
  return Array.isArray(value) && value.length <= ITEMS_MAX
    ? value
    : refuseField(field, `a list of at most ${ITEMS_MAX} items`, value);
}

function objectIn(value: unknown, field: string, fields: readonly string[]): Record<string, unknown> {
  if (!isObject(value)) return refuseField(field, "an object", value);
  const unknownField = Object.keys(value).find((name) => !fields.includes(name));
  if (unknownField !== undefined)
    throw policyError(`${field} has the unknown field ${describeValue(unknownField)}; allowed: ${fields.join(", ")}`);
  return value;
}

function toolCallIn(value: unknown, field: string): ToolCall {
  const { id, name, arguments: input } = objectIn(value, field, ["id", "name", "arguments"]);
  return { id: textIn(id, `${field}.id`), name: textIn(name, `${field}.name`), arguments: input ?? {} };
}

function messageIn(value: unknown, field: string): Message {
  const { role, content, toolCalls, toolCallId } = objectIn(value, field, [
    "role",
    "content",
    "toolCalls",
    "toolCallId",
  ]);
  if (!ROLES.includes(role)) refuseField(`${field}.role`, "system, user, assistant or tool", role);
  const calls = isAbsent(toolCalls) ? [] : readList(toolCalls, `${field}.toolCalls`);
  if (role === "tool" && isAbsent(toolCallId)) refuseField(`${field}.toolCallId`, "the id of a tool call", toolCallId);
  return {
    role: role as Message["role"],
    // An answer that only calls tools has no text.
    content: calls.length > 0 && isAbsent(content) ? "" : textIn(content, `${field}.content`),
    toolCalls: calls.map((call, index) => toolCallIn(call, `${field}.toolCalls[${index}]`)),
    toolCallId: isAbsent(toolCallId) ? null : textIn(toolCallId, `${field}.toolCallId`),
  };
}

function toolIn(value: unknown, field: string): AiTool {
  const { name, description = "", parameters } = objectIn(value, field, ["name", "description", "parameters"]);
  if (typeof name !== "string" || !TOOL_NAME.test(name))
    refuseField(`${field}.name`, "1 to 64 letters, digits, _ and -", name);
  if (!isAbsent(parameters) && !isObject(parameters)) refuseField(`${field}.parameters`, "a JSON Schema", parameters);
  const schema = (parameters ?? { type: "object", properties: {} }) as Record<string, unknown>;
  return { name: name as string, description: textIn(description, `${field}.description`), parameters: schema };
}

function completionIn(options: Record<string, unknown>, model: string | null): CompletionOptions {
  const { messages, tools, maxTokens = null, temperature = null, responseFormat = null, stream = false } = options;
  const input = readList(messages, "messages");
  if (input.length === 0) refuseField("messages", "a list of at least one message", messages);
  const isCount = Number.isSafeInteger(maxTokens) && (maxTokens as number) > 0 && (maxTokens as number) <= 1_000_000;
  if (maxTokens !== null && !isCount) refuseField("maxTokens", "a whole number from 1 to 1000000", maxTokens);
  const isWarm = typeof temperature === "number" && temperature >= 0 && temperature <= 2;
  if (temperature !== null && !isWarm) refuseField("temperature", "a number from 0 to 2", temperature);
  if (responseFormat !== null && !isObject(responseFormat)) refuseField("responseFormat", "an object", responseFormat);
  if (typeof stream !== "boolean") refuseField("stream", "true or false", stream);
  return {
    call: "completions",
    model,
    messages: input.map((message, index) => messageIn(message, `messages[${index}]`)),
    tools: isAbsent(tools) ? [] : readList(tools, "tools").map((tool, index) => toolIn(tool, `tools[${index}]`)),
    maxTokens: maxTokens as number | null,
    temperature: temperature as number | null,
    responseFormat: responseFormat as Record<string, unknown> | null,
    stream: stream as boolean,
  };
}

function transcriptIn(options: Record<string, unknown>, model: string | null): TranscribeOptions {
  const { name = "audio", contentType, data } = objectIn(options["file"], "file", ["name", "contentType", "data"]);
  const isType = typeof contentType === "string" && CONTENT_TYPE.test(contentType);
  if (!isType) refuseField("file.contentType", "a content type such as audio/mpeg", contentType);
  const bytes = Buffer.from(textIn(data, "file.data"), "base64");
  if (bytes.length === 0) refuseField("file.data", "bytes in base64", data);
  const plainName = textIn(name, "file.name")
    .replace(/[^\w.-]/g, "_")
    .slice(0, 100);
  return { call: "transcribe", model, file: { name: plainName || "audio", contentType: contentType as string, bytes } };
}

/** Validates the options of a call. @throws AiError POLICY whose message contains the path of the invalid field */
export function readAiOptions(call: AiCall, value: unknown): AiOptions {
  const options = objectIn(value ?? {}, "options", FIELDS[call]);
  const { model: requested = null } = options;
  if (requested !== null && (typeof requested !== "string" || !NAME.test(requested)))
    refuseField("model", "the name of a model", requested);
  const model = requested as string | null;
  if (call === "completions") return completionIn(options, model);
  if (call === "transcribe") return transcriptIn(options, model);
  if (call === "image") {
    const { prompt, size = null } = options;
    if (size !== null && !/^\d{2,5}x\d{2,5}$/.test(String(size)))
      refuseField("size", "width and height in pixels, such as 1024x1024", size);
    return { call, model, prompt: textIn(prompt, "prompt"), size: size as string | null };
  }
  const { input } = options;
  const texts = typeof input === "string" ? [input] : readList(input, "input");
  if (texts.length === 0) refuseField("input", "a text or a list of texts", input);
  return { call, model, input: texts.map((text, index) => textIn(text, `input[${index}]`)) };
}
