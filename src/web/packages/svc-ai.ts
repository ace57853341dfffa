/** Package `Svc.AI`: sends requests to language models through the service, which adds the API key. Available only in server actions. */
import type { AI, AiCompletion, AiCompletionOptions, AiFile, AiPart } from "../runtime/ai-types.js";
import { getConnection } from "./connection.js";
import { defineSvcNamespace } from "./define.js";

interface AiReply {
  answer?: unknown;
  failure?: { code: string; message: string };
}

function createAiError({ code, message }: { code: string; message: string }): Error {
  return Object.assign(new Error(message), { code });
}

function toRequestError(error: unknown): Error {
  const { status, message } = error as { status?: string; message: string };
  // The service rejects requests from pages with these two statuses, because only server actions can use language models.
  if (status === "FORBIDDEN" || status === "UNAUTHORIZED")
    return createAiError({ code: "INTEGRATION_UNAVAILABLE", message: "Svc.AI is available in server actions only" });
  return createAiError({ code: status === "PAYLOAD_TOO_LARGE" ? "LIMIT" : "TRANSPORT", message });
}

function readAnswer({ answer, failure }: AiReply): unknown {
  if (failure) throw createAiError(failure);
  return answer;
}

const getAiPath = (appId: () => number, call: string): string => `/v1/apps/${appId()}/ai/${call}`;

async function requestAi(call: string, options: unknown): Promise<unknown> {
  const { appId, request } = getConnection();
  const reply = await request("POST", getAiPath(appId, call), options).catch((error: unknown) => {
    throw toRequestError(error);
  });
  return readAnswer(reply);
}

/** Yields the parts of the answer's text when they arrive, then the complete answer. Cancels the request when the caller stops reading. */
async function* streamCompletion(options: unknown): AsyncGenerator<AiPart, void, void> {
  const { appId, lines } = getConnection();
  const receivedLines = lines("POST", getAiPath(appId, "completions"), options)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await receivedLines.next().catch((error: unknown) => {
        throw toRequestError(error);
      });
      if (done)
        throw createAiError({
          code: "TRANSPORT",
          message: "the response of the service ended before the answer was complete",
        });
      const { text, ...reply } = value as AiReply & { text?: string };
      if (text !== undefined) yield { type: "text", text };
      else {
        yield { type: "end", completion: readAnswer(reply) as AiCompletion };
        return;
      }
    }
  } finally {
    await receivedLines.return?.();
  }
}

const CHUNK_BYTES = 0x8000;

/** Returns the file with its bytes in base64. A value that is not a Blob already has this form, or the service rejects it. */
async function encodeFile(file: AiFile): Promise<unknown> {
  if (typeof file !== "object" || file === null || !("arrayBuffer" in file)) return file;
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let offset = 0; offset < bytes.length; offset += CHUNK_BYTES) {
    text += String.fromCharCode(...bytes.subarray(offset, offset + CHUNK_BYTES));
  }
  const { name } = file as { name?: string };
  return {
    name: name ?? "audio",
    contentType: file.type.split(";")[0] || "application/octet-stream",
    data: btoa(text),
  };
}

const aiFunctions = {
  completions: (options: AiCompletionOptions) =>
    options?.stream === true ? streamCompletion(options) : (requestAi("completions", options) as Promise<AiCompletion>),
  embeddings: (options) => requestAi("embeddings", options),
  image: (options) => requestAi("image", options),
  transcribe: async (options) => requestAi("transcribe", { ...options, file: await encodeFile(options?.file) }),
} as AI;

defineSvcNamespace("AI", aiFunctions);
