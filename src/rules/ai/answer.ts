/** Types for all AI providers: the results of `Svc.AI`, and the interface of an adapter for one provider's API. */
import type { AiToolCall } from "./options.js";

export interface AiTokenUsage {
  inputTokens: number;
  outputTokens: number;
}

export interface AiCompletion {
  message: { role: "assistant"; content: string };
  toolCalls: AiToolCall[];
  usage: AiTokenUsage;
  model: string;
  finishReason: string;
}

export type AiAnswer =
  | AiCompletion
  | { vectors: number[][]; usage: AiTokenUsage }
  | { images: { contentType: string; data: string }[] }
  | { text: string };

/** HTTP request to a provider. `path` is appended to the provider's base URL. */
export interface AiProviderRequest {
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

export interface AiProviderApi {
  /** Builds the HTTP request for a call of `Svc.AI`. @throws AiError POLICY if the provider does not support the call */
  buildRequest(options: object, model: string, key: string): AiProviderRequest;
  /**
   * Parses the body of the HTTP response.
   * @throws AiError TRANSPORT if a field is missing or invalid; UNSUPPORTED if the provider sent an image only as a URL
   */
  readResponse(options: object, model: string, body: Buffer): AiAnswer;
  createEventReader(model: string): CompletionEventReader;
}

export interface CompletionEventReader {
  /** Adds an event of the stream. Returns the text that it adds to the answer. @throws AiError TRANSPORT for an error of the provider */
  push(event: unknown): string;
  /** Returns the number of characters received so far, in texts and in arguments of tool calls. */
  characterCount(): number;
  /** Returns the complete answer after the last event. @throws AiError TRANSPORT if the stream ended early */
  finish(): AiCompletion;
}

export const buildJsonRequest = (path: string, headers: Record<string, string>, body: object): AiProviderRequest => ({
  path,
  headers: { ...headers, "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(body)),
});
