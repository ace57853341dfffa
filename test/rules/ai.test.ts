/** Tests the formats of the OpenAI and Anthropic APIs without a service: fields by model, and streams of compatible services. */
import { expect } from "chai";
import type { AiCompletion, AiProviderApi } from "../../src/rules/ai/answer.js";
import { ANTHROPIC_API } from "../../src/rules/ai/anthropic.js";
import { OPENAI_API } from "../../src/rules/ai/openai.js";
import { parseAiOptions } from "../../src/rules/ai/options.js";
import { ServerSentEventReader } from "../../src/rules/ai/provider-json.js";

const options = (more: object = {}) =>
  parseAiOptions("completions", { messages: [{ role: "user", content: "Hello" }], ...more });
const bodyFor = (model: string, more: object) =>
  JSON.parse(Buffer.from(OPENAI_API.buildRequest(options(more), model, "key").body).toString());

const streamOf = (chunks: object[], end = "\n\n"): Buffer =>
  Buffer.from(
    [...chunks.map((data) => `data: ${JSON.stringify(data)}`), "data: [DONE]"].map((line) => line + end).join(""),
  );
const chunk = (delta: object, finish: string | null = null) => ({
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
});
/** Reads a stream in parts of `size` bytes. Returns its texts and its completion. */
const read = (api: AiProviderApi, body: Buffer, size = body.length): { texts: string[]; completion: AiCompletion } => {
  const [reader, stream] = [new ServerSentEventReader(), api.createEventReader("m")];
  const events: unknown[] = [];
  for (let at = 0; at < body.length; at += size) events.push(...reader.push(body.subarray(at, at + size)));
  const texts = [...events, ...reader.finish()].map((event) => stream.push(event)).filter((text) => text !== "");
  return { texts, completion: stream.finish() };
};

describe("the APIs of language models", () => {
  it("get the token limit in the field that the model accepts", () => {
    for (const model of ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-nano"]) {
      const body = bodyFor(model, { maxTokens: 7 });
      expect(body.max_completion_tokens, model).to.equal(7);
      expect(body, model).to.not.have.property("max_tokens");
    }
    for (const model of ["gpt-4o", "gpt-4.1", "mistral-small", "llama3", "omni"]) {
      const body = bodyFor(model, { maxTokens: 7 });
      expect(body.max_tokens, model).to.equal(7);
      expect(body, model).to.not.have.property("max_completion_tokens");
    }
    expect(bodyFor("gpt-5", {})).to.not.have.any.keys("max_tokens", "max_completion_tokens");
  });

  it("stream tool calls with and without an index, and with other line ends", () => {
    const call = (id: string, text: string, index?: number) => ({
      tool_calls: [
        {
          ...(index !== undefined && { index }),
          ...(id && { id }),
          function: { ...(id && { name: id }), arguments: text },
        },
      ],
    });
    const expected = [
      { id: "a", name: "a", arguments: { n: 1 } },
      { id: "b", name: "b", arguments: { n: 2 } },
    ];
    for (const isIndexed of [true, false]) {
      const index = (value: number) => (isIndexed ? value : undefined);
      const chunks = [
        chunk(call("a", '{"n":', index(0))),
        chunk(call("", "1}", index(0))),
        chunk(call("b", "", index(1))),
        chunk(call("", '{"n":2}', index(1))),
        chunk({}, "tool_calls"),
      ];
      for (const end of ["\n\n", "\r\n\r\n"]) {
        const { completion } = read(OPENAI_API, streamOf(chunks, end));
        expect(completion.toolCalls, `${isIndexed}`).to.deep.equal(expected);
      }
    }
  });

  it("return the same texts for any split of a stream, also within a character and a line end", () => {
    const texts = ["Grüezi ", "👋", "a\nb\r\n", "end"];
    const chunks = [...texts.map((content) => chunk({ content })), chunk({}, "stop")];
    for (const end of ["\n\n", "\r\n\r\n"]) {
      const body = streamOf(chunks, end);
      for (const size of [1, 2, 3, 7, 64, body.length]) expect(read(OPENAI_API, body, size).texts).to.deep.equal(texts);
    }
  });

  it("that use a huge index for a part fail", () => {
    const huge = 2 ** 32 - 2;
    const start = { type: "content_block_start", index: huge, content_block: { type: "text" } };
    const toolCall = chunk({ tool_calls: [{ index: huge, id: "a", function: { name: "a" } }] });
    expect(() => read(ANTHROPIC_API, streamOf([start]))).to.throw("the index of a part must be at most 1000");
    expect(() => read(OPENAI_API, streamOf([toolCall]))).to.throw("the index of a part must be at most 1000");
  });

  it("that end a stream early, or with an error, fail", () => {
    const isFailure = (read: () => unknown) => expect(read).to.throw().with.property("code", "TRANSPORT");
    isFailure(() => read(OPENAI_API, streamOf([chunk({ content: "Hel" })])));
    const event = (data: object) => `event: x\ndata: ${JSON.stringify(data)}\n\n`;
    const messageStart = event({ type: "message_start", message: { model: "m", usage: { input_tokens: 1 } } });
    isFailure(() => read(ANTHROPIC_API, Buffer.from(messageStart)));
    const overloaded =
      messageStart + event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
    isFailure(() => read(ANTHROPIC_API, Buffer.from(overloaded)));
    const failed = [chunk({ content: "Hel" }), { error: { type: "server_error", message: "Overloaded" } }];
    expect(() => read(OPENAI_API, streamOf(failed))).to.throw("the AI provider reported an error");
  });

  it("get the arguments of earlier tool calls in their own form, as an object or as JSON text", () => {
    for (const input of [{ place: "Bern" }, '{"place": "Bern"}']) {
      const messages = [
        { role: "assistant", content: "", toolCalls: [{ id: "a", name: "weather", arguments: input }] },
      ];
      const build = (api: AiProviderApi) =>
        JSON.parse(Buffer.from(api.buildRequest(options({ messages }), "m", "key").body).toString());
      expect(build(ANTHROPIC_API).messages[0].content[0].input).to.deep.equal({ place: "Bern" });
      expect(JSON.parse(build(OPENAI_API).messages[0].tool_calls[0].function.arguments)).to.deep.equal({
        place: "Bern",
      });
    }
  });

  it("do not put the thoughts of a model into its message", () => {
    const events = [
      { type: "message_start", message: { model: "m", usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Yes" } },
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
      { type: "message_stop" },
    ];
    const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    expect(read(ANTHROPIC_API, Buffer.from(text)).completion).to.deep.include({
      message: { role: "assistant", content: "Yes" },
      usage: { inputTokens: 1, outputTokens: 5 },
      finishReason: "end_turn",
    });
  });
});
