/** `Svc.AI`: language models, asked through the service, which has the key. In server actions only. */
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

async function ask(call: string, options: unknown): Promise<unknown> {
  const { appId, request } = connection();
  let reply: Reply;
  try {
    reply = (await request("POST", `/v1/apps/${appId()}/ai/${call}`, options)) as Reply;
  } catch (error) {
    const { status } = error as { status?: string };
    // Pages have no right to it.
    if (status === "FORBIDDEN" || status === "UNAUTHORIZED")
      throw failed({ code: "INTEGRATION_UNAVAILABLE", message: "Svc.AI is available in server actions only" });
    throw failed({ code: status === "PAYLOAD_TOO_LARGE" ? "LIMIT" : "TRANSPORT", message: (error as Error).message });
  }
  if (reply.failure) throw failed(reply.failure);
  return reply.answer;
}

/** Parts of the text as the provider streamed them, then the whole. */
async function* streamed(options: unknown): AsyncGenerator<AiPart, void, void> {
  const { parts, completion } = (await ask("completions", options)) as { parts: string[]; completion: AiCompletion };
  for (const text of parts) yield { type: "text", text };
  yield { type: "end", completion };
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
