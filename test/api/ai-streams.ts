/** Tests of `Svc.AI` streams. ai.test.ts runs them with its service and its provider. */
import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { runInBackground } from "../../src/background.js";
import { blocksOf, readPage } from "../docs/pages.js";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { KEY, OPENAI_CHUNKS, OPENAI_STREAM, type ProviderCall, streamedText } from "./ai-answers.js";

/** Response of the test's provider to each request: a status and a body, or a function that writes the response. */
export interface ProviderAnswer {
  status?: number;
  text: string;
  live?: (response: ServerResponse) => void;
}

export interface TestProvider {
  readonly service: TestService;
  /** Requests that the provider has received since the start of the current test. */
  readonly calls: readonly ProviderCall[];
  answer: ProviderAnswer;
  /** Runs the body of a server action. @param fields of the action */
  // biome-ignore lint/suspicious/noExplicitAny: each action returns another type
  run(code: string, fields?: object): Promise<any>;
}

const HELLO = { messages: [{ role: "user" as const, content: "Hello" }] };
const ask = (options: object) => `Svc.AI.completions(${JSON.stringify(options)})`;

export function testAiStreams(provider: TestProvider): void {
  it("streams text and tool calls", async () => {
    provider.answer = { text: OPENAI_STREAM };
    const parts = await provider.run(
      `const parts = []; for await (const part of ${ask({ ...HELLO, stream: true })}) parts.push(part); return parts`,
    );
    // The service sends a word only when the word cannot be the start of an encoded secret. So parts can differ from those of the provider.
    expect(parts.slice(0, -1)).to.deep.equal([{ type: "text", text: "Hello" }]);
    expect(parts.at(-1)).to.deep.equal({
      type: "end",
      completion: {
        message: { role: "assistant", content: "Hello" },
        toolCalls: [{ id: "call_1", name: "weather", arguments: { place: "Bern" } }],
        usage: { inputTokens: 9, outputTokens: 3 },
        model: "gpt-4o-mini-2024-07-18",
        finishReason: "tool_calls",
      },
    });
    expect(provider.calls[0]!.body).to.deep.include({ stream: true, stream_options: { include_usage: true } });
  });

  it("writes a streamed text into an entry, as the guide describes", async () => {
    const { service } = provider;
    const sources = `/v1/apps/${service.appId}/data-sources`;
    const block = blocksOf(readPage("docs/guides/stream-a-model.md")).find(({ text }) => text.includes("<<'EOF'"));
    const code = /<<'EOF'\n([\s\S]*?)\nEOF/.exec(block!.text)![1]!.replace("function execute", "function stream");
    await service.rest("POST", sources, { body: { name: "Answers", columns: ["Request", "Text", "Done"] } });
    provider.answer = { text: OPENAI_STREAM };
    const text = await provider.run(`${code}\nreturn stream({ payload: { request: "r-1", question: "Who?" } })`, {
      dependencies: ["svc-ai", "svc-datasources"],
    });
    const { entries } = (await service.rest("POST", `${sources}/Answers/query`, { body: {} })).body;
    expect([text, entries[0].data]).to.deep.equal(["Hello", { Request: "r-1", Text: "Hello", Done: true }]);
  });

  it("gives the action each part of a stream before the provider sends the next one", async () => {
    // After each part of the stream, the provider sends the next part only when the action has requested an embedding of this part.
    const waiting: (() => void)[] = [];
    const texts = ["Hello ", "dear ", "you."];
    provider.answer = {
      text: "",
      live: (response) => {
        if (provider.calls.at(-1)!.path.endsWith("/embeddings")) {
          response.end(JSON.stringify({ data: [{ embedding: [1] }], usage: { prompt_tokens: 1 } }));
          waiting.shift()!();
          return;
        }
        const parts = [...texts.map(streamedText), OPENAI_CHUNKS.end];
        const next = () => {
          const part = parts.shift()!;
          if (parts.length === 0) return response.end(part);
          waiting.push(next);
          return response.write(part);
        };
        next();
      },
    };
    const received = await provider.run(`const heard = [];
      for await (const part of ${ask({ ...HELLO, stream: true })}) {
        heard.push(part.type === "text" ? part.text : part.completion.message.content);
        if (part.type === "text") await Svc.AI.embeddings({ input: part.text });
      }
      return heard`);
    expect(received).to.deep.equal([...texts, texts.join("")]);
    expect(provider.calls.slice(1).map(({ body }) => body.input)).to.deep.equal(texts.map((text) => [text]));
  });

  it("gives code the error of a stream after the parts before it, and counts the tokens", async () => {
    await provider.service.db.query("DELETE FROM ai_usage");
    let streaming: ServerResponse;
    provider.answer = {
      text: "",
      live: (response) => {
        if (provider.calls.at(-1)!.path.endsWith("/embeddings")) {
          response.end(JSON.stringify({ data: [{ embedding: [1] }], usage: { prompt_tokens: 1 } }));
          streaming.destroy();
        } else {
          streaming = response;
          response.write(streamedText("Hello you."));
        }
      },
    };
    const received = await provider.run(`const heard = [];
      try {
        for await (const part of ${ask({ ...HELLO, stream: true })}) {
          heard.push(part.text);
          await Svc.AI.embeddings({ input: part.text });
        }
      } catch ({ code }) {
        heard.push(code);
      }
      return heard`);
    expect(received).to.deep.equal(["Hello you.", "TRANSPORT"]);
    const [{ tokens }] = await provider.service.db.query("SELECT tokens::int FROM ai_usage");
    // The question counts as 2 tokens, the part as 3 and the embedding as 1.
    expect(tokens).to.equal(2 + 3 + 1);
  });

  /**
   * `stopReading` stops reading the stream early. The run then requests an embedding. The provider responds only when the request of the
   * stream has ended. If that request never ends, the run times out.
   */
  for (const [title, stopReading] of [
    ["breaks out of the loop", `for await (const part of ${ask({ ...HELLO, stream: true })}) break;`],
    [
      "throws in the loop",
      `try { for await (const part of ${ask({ ...HELLO, stream: true })}) throw new Error(); } catch {}`,
    ],
    [
      "ends the iterator",
      `const parts = ${ask({ ...HELLO, stream: true })}; await parts.next(); await parts.return();`,
    ],
  ] as const) {
    it(`ends the request to the model when the action ${title}, while the run goes on`, async () => {
      const ended = Promise.withResolvers<void>();
      provider.answer = {
        text: "",
        live: (response) => {
          if (provider.calls.at(-1)!.path.endsWith("/embeddings")) {
            const answer = JSON.stringify({ data: [{ embedding: [1] }], usage: { prompt_tokens: 1 } });
            runInBackground(ended.promise.then(() => response.end(answer)));
            return;
          }
          response.once("close", ended.resolve);
          response.write(streamedText("Hello you."));
        },
      };
      const code = `${stopReading} await Svc.AI.embeddings({ input: "x" }); return "done"`;
      expect(await provider.run(code, { timeoutMs: 30_000 })).to.equal("done");
    });
  }

  it("ends the request to the model when the run ends", async () => {
    const ended = Promise.withResolvers<void>();
    provider.answer = {
      text: "",
      live: (response) => {
        response.once("close", ended.resolve);
        response.write(streamedText("Hello you."));
      },
    };
    const code = `const parts = ${ask({ ...HELLO, stream: true })}; return (await parts.next()).value`;
    expect(await provider.run(code)).to.deep.equal({ type: "text", text: "Hello you." });
    await ended.promise;
  });

  it("counts the tokens of a stream that ends without text: those of the question and of tool arguments", async () => {
    const toolEvents = OPENAI_STREAM.split("\n\n")
      .filter((event) => event.includes("arguments"))
      .join("\n\n");
    for (const [text, tokens] of [
      ['data: {"choices":[]}\n\n', 2],
      // The two pieces of tool arguments have ten and six characters, which count as four tokens.
      [`${toolEvents}\n\n`, 2 + 4],
      ["data: no JSON\n\n", 2],
    ] as const) {
      await provider.service.db.query("DELETE FROM ai_usage");
      provider.answer = { text };
      const code = await provider.run(
        `try { for await (const part of ${ask({ ...HELLO, stream: true })}); } catch ({ code }) { return code }`,
      );
      expect(code, text).to.equal("TRANSPORT");
      const [used] = await provider.service.db.query("SELECT tokens::int FROM ai_usage");
      expect(used.tokens, text).to.equal(tokens);
    }
  });

  longTest("streams answers to requests that are too long for the direct connection", async () => {
    provider.answer = { text: OPENAI_STREAM };
    const long = { messages: [{ role: "user", content: "x".repeat(300_000) }] };
    const parts = await provider.run(
      `const parts = []; for await (const part of ${ask({ ...long, stream: true })}) parts.push(part.type); return parts`,
    );
    expect(parts).to.deep.equal(["text", "end"]);
  });

  it("masks a secret that a stream contains in several parts", async () => {
    const echoed = `The key is ${KEY}, or ${encodeURIComponent(Buffer.from(KEY).toString("base64"))}. Done`;
    provider.answer = { text: [...echoed].map(streamedText).join("") + OPENAI_CHUNKS.end };
    const [seen, whole] = (await provider.run(`let seen = "", whole;
      for await (const part of ${ask({ ...HELLO, stream: true })}) {
        if (part.type === "text") seen += part.text;
        else whole = part.completion.message.content;
      }
      return [seen, whole]`)) as [string, string];
    expect(seen).to.equal(whole);
    expect(whole).to.include("«__ai»").and.not.include("canary");
  });
}
