/** Types that all AI providers share: results of `Svc.AI`, and the interface to the API of a provider. */
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

/** Converts between the calls of `Svc.AI` and the HTTP API of one provider. */
export interface ProviderApi {
  /** Builds the HTTP request for a call of `Svc.AI`. @throws AiError POLICY if the provider does not support the call */
  buildRequest(options: object, model: string, key: string): ProviderRequest;
  /** Parses the body of the HTTP response. @throws AiError TRANSPORT if a field is missing or has an unexpected type */
  readResponse(options: object, model: string, body: Buffer): AiAnswer;
  /** Creates a reader for the events of one streamed completion. */
  createEventReader(model: string): CompletionEventReader;
}

export interface CompletionEventReader {
  /** Adds an event. Returns the text that the event adds. @throws AiError TRANSPORT if the event is an error of the provider */
  push(event: unknown): string;
  /** Returns the number of characters received so far, as text and as arguments of tools. */
  characterCount(): number;
  /** Returns the whole completion after the last event. @throws AiError TRANSPORT if the stream ended early */
  finish(): AiCompletion;
}

export const buildJsonRequest = (path: string, headers: Record<string, string>, body: object): ProviderRequest => ({
  path,
  headers: { ...headers, "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(body)),
});
