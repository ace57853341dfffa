/** Package `Svc.AI`: sends requests to language models through the service, which adds the key. Available only in server actions. */
import type { AI, AiCompletion, AiCompletionOptions, AiFile, AiPart } from "../runtime/ai-types.js";
import { connection } from "./connection.js";
import { define } from "./define.js";

interface Reply {
  answer?: unknown;
  failure?: { code: string; message: string };
}

function failed({ code, message }: { code: string; message: string }): Error {
  return Object.assign(new Error(message), { code });
}

function notSent(error: unknown): Error {
  const { status, message } = error as { status?: string; message: string };
  // Pages are not allowed to use language models.
  if (status === "FORBIDDEN" || status === "UNAUTHORIZED")
    return failed({ code: "INTEGRATION_UNAVAILABLE", message: "Svc.AI is available in server actions only" });
  return failed({ code: status === "PAYLOAD_TOO_LARGE" ? "LIMIT" : "TRANSPORT", message });
}

function answerOf({ answer, failure }: Reply): unknown {
  if (failure) throw failed(failure);
  return answer;
}

const pathOf = (appId: () => number, call: string): string => `/v1/apps/${appId()}/ai/${call}`;

async function ask(call: string, options: unknown): Promise<unknown> {
  const { appId, request } = connection();
  const reply = await request("POST", pathOf(appId, call), options).catch((error: unknown) => {
    throw notSent(error);
  });
  return answerOf(reply);
}

/** Yields the parts of the text when they arrive, then the complete answer. Stops the request when the caller stops reading. */
async function* streamed(options: unknown): AsyncGenerator<AiPart, void, void> {
  const { appId, lines } = connection();
  const received = lines("POST", pathOf(appId, "completions"), options)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await received.next().catch((error: unknown) => {
        throw notSent(error);
      });
      if (done) throw failed({ code: "TRANSPORT", message: "the answer of the service ended early" });
      const { text, ...reply } = value as Reply & { text?: string };
      if (text !== undefined) yield { type: "text", text };
      else {
        yield { type: "end", completion: answerOf(reply) as AiCompletion };
        return;
      }
    }
  } finally {
    await received.return?.();
  }
}

const BYTES_AT_ONCE = 0x8000;

async function base64(file: AiFile): Promise<{ name: string; contentType: string; data: string }> {
  if (!("arrayBuffer" in file)) return file;
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += BYTES_AT_ONCE) {
    text += String.fromCharCode(...bytes.subarray(at, at + BYTES_AT_ONCE));
  }
  const { name } = file as { name?: string };
  return {
    name: name ?? "audio",
    contentType: file.type.split(";")[0] || "application/octet-stream",
    data: btoa(text),
  };
}

const members = {
  completions: (options: AiCompletionOptions) =>
    options?.stream === true ? streamed(options) : (ask("completions", options) as Promise<AiCompletion>),
  embeddings: (options) => ask("embeddings", options),
  image: (options) => ask("image", options),
  transcribe: async (options) => ask("transcribe", { ...options, file: await base64(options.file) }),
} as AI;

define("AI", members);
