/** Adapter for OpenAI's HTTP API and compatible APIs: builds requests, and parses responses and streams. Does not send the requests. */
import type {
  AiAnswer,
  AiCompletion,
  AiProviderApi,
  AiProviderRequest,
  AiTokenUsage,
  CompletionEventReader,
} from "./answer.js";
import { buildJsonRequest } from "./answer.js";
import { AiError } from "./failure.js";
import type { AiOptions, AiToolCall, CompletionMessage, CompletionOptions, TranscribeOptions } from "./options.js";
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

const createBearerHeader = (key: string) => ({ authorization: `Bearer ${key}` });

const convertToolCall = ({ id, name, arguments: input }: AiToolCall) => ({
  id,
  type: "function",
  function: { name, arguments: typeof input === "string" ? input : JSON.stringify(input) },
});

const convertMessage = ({ role, content, toolCalls, toolCallId }: CompletionMessage) => ({
  role,
  content,
  ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(convertToolCall) }),
  ...(toolCallId !== null && { tool_call_id: toolCallId }),
});

/** Start of the names of models that need `max_completion_tokens`. All other models get `max_tokens`. */
const REASONING_MODEL_PREFIXES = ["o1", "o3", "o4", "gpt-5"];
const getMaxTokensField = (model: string): string =>
  REASONING_MODEL_PREFIXES.some((name) => model.startsWith(name)) ? "max_completion_tokens" : "max_tokens";

function buildCompletionBody(options: CompletionOptions, model: string): object {
  const { messages, tools, maxTokens, temperature, responseFormat, stream } = options;
  return {
    model,
    messages: messages.map(convertMessage),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: "function", function: tool })) }),
    ...(maxTokens !== null && { [getMaxTokensField(model)]: maxTokens }),
    ...(temperature !== null && { temperature }),
    ...(responseFormat !== null && { response_format: responseFormat }),
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  };
}

/** Builds a multipart request (RFC 7578) with a boundary that does not occur in the file. */
function buildTranscriptRequest({ file }: TranscribeOptions, model: string, key: string): AiProviderRequest {
  const bytes = Buffer.from(file.bytes);
  let boundary = "svc-ai";
  while (bytes.includes(boundary)) boundary += Math.random().toString(36).slice(2);
  const { name, contentType } = file;
  const formHead = [
    `--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}\r\n`,
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n`,
    `Content-Type: ${contentType}\r\n\r\n`,
  ].join("");
  const body = Buffer.concat([Buffer.from(formHead), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const headers = { ...createBearerHeader(key), "content-type": `multipart/form-data; boundary=${boundary}` };
  return { path: "/audio/transcriptions", headers, body };
}

const readTokenUsage = (usage: unknown): AiTokenUsage => ({
  inputTokens: toCountOrZero(getValueAtPath(usage, "prompt_tokens")),
  outputTokens: toCountOrZero(getValueAtPath(usage, "completion_tokens")),
});

function readCompletion(body: Record<string, unknown>, model: string): AiCompletion {
  const message = getValueAtPath(body, "choices", 0, "message");
  if (message === undefined) throw createMalformedResponseError("choices[0].message");
  const toolCalls = getValueAtPath(message, "tool_calls");
  return {
    message: { role: "assistant", content: toTextOrEmpty(getValueAtPath(message, "content")) },
    toolCalls: (Array.isArray(toolCalls) ? toolCalls : []).map((toolCall) => ({
      id: toTextOrEmpty(getValueAtPath(toolCall, "id")),
      name: toTextOrEmpty(getValueAtPath(toolCall, "function", "name")),
      arguments: parseToolArguments(toTextOrEmpty(getValueAtPath(toolCall, "function", "arguments"))),
    })),
    usage: readTokenUsage(getValueAtPath(body, "usage")),
    model: toTextOrEmpty(getValueAtPath(body, "model")) || model,
    finishReason: toTextOrEmpty(getValueAtPath(body, "choices", 0, "finish_reason")),
  };
}

/** Returns the index of the tool call to which a part belongs. Without an index from the provider, a part with an ID starts a new call. */
function findToolCallIndex(delta: unknown, callCount: number): number {
  const index = getValueAtPath(delta, "index");
  if (Number.isSafeInteger(index)) return parseAnswerPartIndex(index);
  return toTextOrEmpty(getValueAtPath(delta, "id")) !== "" ? callCount : Math.max(0, callCount - 1);
}

/** Collects the events of a stream. The arguments of a tool call arrive in several parts. */
function createEventReader(model: string): CompletionEventReader {
  const calls: { id: string; name: string; text: string }[] = [];
  let usage: AiTokenUsage = { inputTokens: 0, outputTokens: 0 };
  let [content, finishReason, answeringModel] = ["", "", model];
  let characters = 0;

  function addToolCallDeltas(deltas: unknown): void {
    for (const delta of Array.isArray(deltas) ? deltas : []) {
      const index = findToolCallIndex(delta, calls.length);
      calls[index] ??= { id: "", name: "", text: "" };
      calls[index].id ||= toTextOrEmpty(getValueAtPath(delta, "id"));
      calls[index].name ||= toTextOrEmpty(getValueAtPath(delta, "function", "name"));
      const addedText = toTextOrEmpty(getValueAtPath(delta, "function", "arguments"));
      calls[index].text += addedText;
      characters += addedText.length;
    }
  }

  return {
    push(event) {
      if (getValueAtPath(event, "error")) throw createReportedFailureError();
      answeringModel = toTextOrEmpty(getValueAtPath(event, "model")) || answeringModel;
      if (getValueAtPath(event, "usage")) usage = readTokenUsage(getValueAtPath(event, "usage"));
      finishReason = toTextOrEmpty(getValueAtPath(event, "choices", 0, "finish_reason")) || finishReason;
      addToolCallDeltas(getValueAtPath(event, "choices", 0, "delta", "tool_calls"));
      const text = toTextOrEmpty(getValueAtPath(event, "choices", 0, "delta", "content"));
      content += text;
      characters += text.length;
      return text;
    },
    characterCount: () => characters,
    finish() {
      if (finishReason === "") throw createIncompleteStreamError("finish_reason");
      const toolCalls = calls
        .filter(Boolean)
        .map(({ id, name, text }) => ({ id, name, arguments: parseToolArguments(text) }));
      return { message: { role: "assistant", content }, toolCalls, usage, model: answeringModel, finishReason };
    },
  };
}

function readEmbeddings(body: Record<string, unknown>): AiAnswer {
  const data = getValueAtPath(body, "data");
  if (!Array.isArray(data)) throw createMalformedResponseError("vectors");
  const vectors = data.map((item) => getValueAtPath(item, "embedding"));
  const isVector = (vector: unknown) => Array.isArray(vector) && vector.every((value) => typeof value === "number");
  if (!vectors.every(isVector)) throw createMalformedResponseError("vectors of numbers");
  return {
    vectors: vectors as number[][],
    usage: { ...readTokenUsage(getValueAtPath(body, "usage")), outputTokens: 0 },
  };
}

const JPEG_BASE64_START = "/9j/";
const WEBP_BASE64_START = "UklGR";

function readImages(body: Record<string, unknown>): AiAnswer {
  const data = getValueAtPath(body, "data");
  if (!Array.isArray(data)) throw createMalformedResponseError("images");
  const images = data.map((item) => {
    const bytes = getValueAtPath(item, "b64_json");
    if (typeof bytes !== "string")
      throw new AiError("UNSUPPORTED", "the AI provider did not send the bytes of an image, but for example its URL");
    const contentType = bytes.startsWith(JPEG_BASE64_START)
      ? "image/jpeg"
      : bytes.startsWith(WEBP_BASE64_START)
        ? "image/webp"
        : "image/png";
    return { contentType, data: bytes };
  });
  return { images };
}

export const OPENAI_API: AiProviderApi = {
  buildRequest(input, model, key) {
    const options = input as AiOptions;
    switch (options.call) {
      case "completions":
        return buildJsonRequest("/chat/completions", createBearerHeader(key), buildCompletionBody(options, model));
      case "embeddings":
        return buildJsonRequest("/embeddings", createBearerHeader(key), { model, input: options.input });
      case "image": {
        const { prompt, size } = options;
        // "dall-e" models send the bytes of an image only with the field `response_format`. Newer models always send the bytes, and reject
        // this field.
        const formatOption = model.startsWith("dall-e") && { response_format: "b64_json" };
        return buildJsonRequest("/images/generations", createBearerHeader(key), {
          model,
          prompt,
          ...(size && { size }),
          ...formatOption,
        });
      }
      default:
        return buildTranscriptRequest(options, model, key);
    }
  },
  readResponse(input, model, body) {
    const options = input as AiOptions;
    const answer = parseJsonObject(body);
    if (options.call === "completions") return readCompletion(answer, model);
    if (options.call === "embeddings") return readEmbeddings(answer);
    if (options.call === "image") return readImages(answer);
    if (typeof getValueAtPath(answer, "text") !== "string") throw createMalformedResponseError("text");
    return { text: toTextOrEmpty(getValueAtPath(answer, "text")) };
  },
  createEventReader,
};
