/** Types of `Svc.AI` answers and of providers' APIs, independent of the provider, and a helper that builds requests. */
import type { ToolCall } from "./options.js";

export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
}

export interface AiCompletion {
  message: { role: "assistant"; content: string };
  toolCalls: ToolCall[];
  usage: TokenUsage;
  model: string;
  finishReason: string;
}

export type AiAnswer =
  | AiCompletion
  | { vectors: number[][]; usage: TokenUsage }
  | { images: { contentType: string; data: string }[] }
  | { text: string };

/** A request to a provider. `path` is appended to the base URL. */
export interface ProviderRequest {
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

/** A provider's API: builds the request of a call and reads its answer. */
export interface ProviderApi {
  /** @throws AiError POLICY if the provider does not support it */
  request(options: object, model: string, key: string): ProviderRequest;
  /** @throws AiError TRANSPORT if the answer has another form */
  read(options: object, model: string, body: Buffer): AiAnswer;
  /** Reads the events of a streamed completion. */
  stream(model: string): CompletionEventReader;
}

export interface CompletionEventReader {
  /** Returns the text that the event adds. @throws AiError TRANSPORT for an error of the provider */
  push(event: unknown): string;
  /** Characters received so far, as text and as arguments of tools. */
  characters(): number;
  /** @throws AiError TRANSPORT if the stream ended early */
  end(): AiCompletion;
}

export const jsonRequest = (path: string, headers: Record<string, string>, body: object): ProviderRequest => ({
  path,
  headers: { ...headers, "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(body)),
});
