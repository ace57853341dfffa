/** Public types of svc-ai; served with public-types.ts as svc.d.ts. Only types. */

export interface AiToolCall {
  id: string;
  name: string;
  arguments: unknown;
}

export interface AiMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  /** For an assistant's message that calls tools. */
  toolCalls?: AiToolCall[];
  /** For a tool's message: the call that it answers. */
  toolCallId?: string;
}

export interface AiTool {
  name: string;
  description?: string;
  /** JSON Schema of the arguments. */
  parameters?: object;
}

export interface AiCompletionOptions {
  /** The first one of the setting's `models` by default. */
  model?: string;
  messages: AiMessage[];
  tools?: AiTool[];
  maxTokens?: number;
  temperature?: number;
  /** As in OpenAI's API. */
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

/** A part of a streamed answer; the last one has the complete answer. */
export type AiPart = { type: "text"; text: string } | { type: "end"; completion: AiCompletion };

/** A file, or its bytes in base64. */
export type AiFile = Blob | { name: string; contentType: string; data: string };

/** `Svc.AI`, of the package svc-ai, in server actions. Errors have a `code` as those of `Svc.App.V3.Actions.request`. */
export interface AI {
  /** Asks a model. Yields parts of the text as they arrive, then the complete answer. */
  completions(options: AiCompletionOptions & { stream: true }): AsyncIterableIterator<AiPart>;
  /** Asks a model. Returns the complete answer. */
  completions(options: AiCompletionOptions & { stream?: false }): Promise<AiCompletion>;
  /** Returns a vector for each text of `input`. */
  embeddings(options: { model?: string; input: string | string[] }): Promise<{ vectors: number[][]; usage: AiUsage }>;
  /** Creates pictures from a description. `data` is base64. */
  image(options: {
    model?: string;
    prompt: string;
    size?: string;
  }): Promise<{ images: { contentType: string; data: string }[] }>;
  /** Returns the text that is spoken in a sound file. */
  transcribe(options: { model?: string; file: AiFile }): Promise<{ text: string }>;
}
