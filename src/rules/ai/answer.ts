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
  /** Builds the request of a call. @throws AiError POLICY if the provider does not support the call */
  request(options: object, model: string, key: string): ProviderRequest;
  /** Reads the response of a call. @throws AiError TRANSPORT if a field is missing or has another type */
  read(options: object, model: string, body: Buffer): AiAnswer;
  /** Reads the events of a streamed completion. */
  stream(model: string): CompletionEventReader;
}

export interface CompletionEventReader {
  /** Returns the text that the event adds. @throws AiError TRANSPORT for an error of the provider */
  push(event: unknown): string;
  /** Returns the number of characters received so far, as text and as arguments of tools. */
  characters(): number;
  /** @throws AiError TRANSPORT if the stream ended early */
  end(): AiCompletion;
}

export const jsonRequest = (path: string, headers: Record<string, string>, body: object): ProviderRequest => ({
  path,
  headers: { ...headers, "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(body)),
});
