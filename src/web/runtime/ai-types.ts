/** Public types of svc-ai. The build adds them to svc.d.ts. This file contains only types. */

export interface AiToolCall {
  id: string;
  name: string;
  arguments: unknown;
}

export interface AiMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  /** Tool calls that the assistant's message requests. */
  toolCalls?: AiToolCall[];
  /** In a message with a tool's result: ID of the tool call. */
  toolCallId?: string;
}

export interface AiTool {
  name: string;
  description?: string;
  /** JSON Schema of the arguments. */
  parameters?: object;
}

export interface AiCompletionOptions {
  /** Name of the model. Default: the first model in `models` of the app's setting `__ai`. */
  model?: string;
  messages: AiMessage[];
  tools?: AiTool[];
  maxTokens?: number;
  temperature?: number;
  /** Format of the answer; the same object as `response_format` in OpenAI's API. */
  responseFormat?: object;
  stream?: boolean;
}

export interface AiUsage {
  inputTokens: number;
  outputTokens: number;
}

export interface AiCompletion {
  message: { role: "assistant"; content: string };
  toolCalls: AiToolCall[];
  usage: AiUsage;
  model: string;
  finishReason: string;
}

/** Part of an answer that a language model streams: some text, or, as the last part, the complete answer. */
export type AiPart = { type: "text"; text: string } | { type: "end"; completion: AiCompletion };

/** A file as a Blob, or as an object whose `data` contains the bytes in base64. */
export type AiFile = Blob | { name: string; contentType: string; data: string };

/** `Svc.AI` of the package svc-ai, for server actions. Errors have the same `code` values as errors of `Svc.App.V3.Actions.request`. */
export interface AI {
  /** Sends messages to a model. Yields parts of the answer's text when they arrive, then the complete answer. */
  completions(options: AiCompletionOptions & { stream: true }): AsyncIterableIterator<AiPart>;
  /** Sends messages to a model. Returns the complete answer. */
  completions(options: AiCompletionOptions & { stream?: false }): Promise<AiCompletion>;
  /** Returns one embedding vector for each text of `input`. */
  embeddings(options: { model?: string; input: string | string[] }): Promise<{ vectors: number[][]; usage: AiUsage }>;
  /** Creates pictures from a description. `data` is base64. */
  image(options: {
    model?: string;
    prompt: string;
    size?: string;
  }): Promise<{ images: { contentType: string; data: string }[] }>;
  /** Converts the speech in a sound file to text. */
  transcribe(options: { model?: string; file: AiFile }): Promise<{ text: string }>;
}
