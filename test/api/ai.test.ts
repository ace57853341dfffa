/** `Svc.AI` in server actions, against local servers that answer as OpenAI and Anthropic do. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { runInBackground } from "../../src/background.js";
import { blocksOf, readPage } from "../docs/pages.js";
import { startTestService, type TestService } from "../harness/service.js";
import {
  ANTHROPIC_ANSWER,
  ANTHROPIC_REQUEST,
  ANTHROPIC_STREAM,
  INVALID_SETTINGS,
  KEY,
  MANUAL,
  OPENAI_ANSWER,
  OPENAI_CALLS,
  openAiAnswerWith,
  type ProviderCall,
  WEATHER,
} from "./ai-answers.js";
import { testAiOverGraphql } from "./ai-over-graphql.js";
import { type ProviderAnswer, testAiStreams } from "./ai-streams.js";

describe("Svc.AI", () => {
  let service: TestService;
  let provider: Server;
  let url: string;
  let calls: ProviderCall[] = [];
  let answer: ProviderAnswer = { text: "{}" };
  let names = 0;

  before(async () => {
    provider = createServer((request, response) => {
      let text = "";
      request.setEncoding("latin1").on("data", (part) => {
        text += part;
      });
      request.on("end", () => {
        const isJson = request.headers["content-type"] === "application/json";
        calls.push({ path: request.url!, headers: request.headers, text, body: isJson ? JSON.parse(text) : null });
        const type = answer.text.startsWith("{") ? "application/json" : "text/event-stream";
        response.writeHead(answer.status ?? 200, { "content-type": type });
        if (answer.live) answer.live(response);
        else response.end(answer.text);
      });
    });
    await new Promise<void>((listening) => provider.listen(0, "127.0.0.1", listening));
    url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    service = await startTestService({ ROLES: "api,runner", ALLOW_PRIVATE_NETWORK: "1" });
  });
  beforeEach(() => {
    calls = [];
  });
  after(async () => {
    await service?.stop();
    provider?.close();
  });
  const setAi = (fields: object = {}) =>
    service.rest("POST", `/v1/apps/${service.appId}/settings`, {
      body: { __ai: { provider: "openai", baseUrl: `${url}/v1`, key: KEY, models: ["gpt-4o-mini"], ...fields } },
    });
  const anthropic = (fields: object = {}) =>
    setAi({ provider: "anthropic", baseUrl: url, models: ["claude-sonnet-4-5"], ...fields });

  async function run(code: string, fields: object = {}) {
    names += 1;
    const name = `ai-${names}`;
    const body = { name, code: `async function execute({ payload, settings }) { ${code} }`, ...MANUAL, ...fields };
    const actions = `/v3/apps/${service.appId}/actions`;
    const made = await service.rest("POST", actions, { body });
    expect(made.http, JSON.stringify(made.body)).to.equal(201);
    const { body: ran } = await service.rest("POST", `${actions}/${name}/runWithResult`, { body: {} });
    return ran.result ?? ran;
  }
  const failing = (call: string) =>
    run(`return ${call}.then(() => "none", ({ code, message }) => ({ code, message }))`);
  const ask = (options: object) => `Svc.AI.completions(${JSON.stringify(options)})`;
  const HELLO = { messages: [{ role: "user" as const, content: "Hello" }] };
  const eventsOf = async (type: string) =>
    (await service.db.query("SELECT data FROM log_event WHERE type = $1 ORDER BY id DESC LIMIT 1", [type]))[0]?.data;

  describe("with OpenAI's API", () => {
    before(() => setAi());

    it("completes, and sends the key in a header that code never receives", async () => {
      answer = { text: JSON.stringify(OPENAI_ANSWER) };
      const options = { ...HELLO, maxTokens: 50, temperature: 0.5, responseFormat: { type: "json_object" } };
      expect(await run(`return { said: await ${ask(options)}, keys: Object.keys(settings) }`)).to.deep.equal({
        said: {
          message: { role: "assistant", content: "Hello there" },
          toolCalls: [],
          usage: { inputTokens: 9, outputTokens: 3 },
          model: "gpt-4o-mini-2024-07-18",
          finishReason: "stop",
        },
        keys: [],
      });
      const [{ path, headers, body }] = calls as [ProviderCall];
      expect([path, headers.authorization]).to.deep.equal(["/v1/chat/completions", `Bearer ${KEY}`]);
      expect(body).to.deep.equal({
        model: "gpt-4o-mini",
        messages: HELLO.messages,
        max_tokens: 50,
        temperature: 0.5,
        response_format: { type: "json_object" },
      });
      const event = await eventsOf("ai.completions");
      expect(event).to.deep.include({ model: "gpt-4o-mini", inputTokens: 9, outputTokens: 3 });
      expect(event.durationMs).to.be.a("number");
      expect(JSON.stringify(event)).to.not.match(/Hello/);
    });

    it("calls tools and passes on their results", async () => {
      answer = { text: JSON.stringify(OPENAI_CALLS) };
      const { toolCalls, finishReason } = await run(`return ${ask({ ...HELLO, tools: [WEATHER] })}`);
      expect([toolCalls, finishReason]).to.deep.equal([
        [{ id: "call_1", name: "weather", arguments: { place: "Bern" } }],
        "tool_calls",
      ]);
      expect(calls[0]!.body.tools).to.deep.equal([{ type: "function", function: WEATHER }]);
      answer = { text: JSON.stringify(OPENAI_ANSWER) };
      const messages = [
        ...HELLO.messages,
        { role: "assistant", content: "", toolCalls },
        { role: "tool", toolCallId: "call_1", content: "sunny" },
      ];
      await run(`return ${ask({ messages })}`);
      expect(calls[1]!.body.messages.slice(1)).to.deep.equal([
        {
          role: "assistant",
          content: "",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: '{"place":"Bern"}' } },
          ],
        },
        { role: "tool", content: "sunny", tool_call_id: "call_1" },
      ]);
    });

    const testProvider = {
      run,
      get service() {
        return service;
      },
      get calls() {
        return calls;
      },
      get answer() {
        return answer;
      },
      set answer(next) {
        answer = next;
      },
    };
    testAiStreams(testProvider);
    testAiOverGraphql(testProvider);

    it("computes embeddings, images and transcripts, each with its log event", async () => {
      await setAi({ models: null });
      answer = {
        text: JSON.stringify({
          object: "list",
          data: [{ embedding: [0.5, -1] }, { embedding: [1, 2] }],
          usage: { prompt_tokens: 4 },
        }),
      };
      const embedded = await run(`return Svc.AI.embeddings({ model: "text-embedding-3-small", input: ["a", "b"] })`);
      expect(embedded).to.deep.equal({
        vectors: [
          [0.5, -1],
          [1, 2],
        ],
        usage: { inputTokens: 4, outputTokens: 0 },
      });
      expect(await eventsOf("ai.embeddings")).to.deep.include({ model: "text-embedding-3-small", inputTokens: 4 });
      answer = { text: JSON.stringify({ created: 1, data: [{ b64_json: "iVBORw0KGgo=" }] }) };
      const image = await run(`return Svc.AI.image({ model: "dall-e-3", prompt: "a cat", size: "1024x1024" })`);
      expect(image).to.deep.equal({ images: [{ contentType: "image/png", data: "iVBORw0KGgo=" }] });
      const imageRequest = { model: "dall-e-3", prompt: "a cat", size: "1024x1024", response_format: "b64_json" };
      expect(calls[1]!.body).to.deep.equal(imageRequest);
      answer = { text: JSON.stringify({ text: "spoken words" }) };
      const file = `new Blob([new Uint8Array([1, 2, 255])], { type: "audio/mpeg" })`;
      expect(await run(`return Svc.AI.transcribe({ model: "whisper-1", file: ${file} })`)).to.deep.equal({
        text: "spoken words",
      });
      expect(calls[2]!.headers["content-type"]).to.match(/^multipart\/form-data; boundary=/);
      expect(calls[2]!.text)
        .to.include('name="model"\r\n\r\nwhisper-1\r\n')
        .and.to.include("audio/mpeg\r\n\r\n\x01\x02\xff\r\n");
      for (const type of ["ai.image", "ai.audio"]) expect((await eventsOf(type)).durationMs).to.be.a("number");
      await setAi();
    });

    it("logs the texts if the app asks for that", async () => {
      await setAi({ logTexts: true });
      answer = { text: JSON.stringify(OPENAI_ANSWER) };
      await run(`return ${ask(HELLO)}`);
      const event = await eventsOf("ai.completions");
      expect([event.messages[0].content, event.answer]).to.deep.equal(["Hello", "Hello there"]);
      await setAi();
    });
  });

  describe("with Anthropic's API", () => {
    before(() => anthropic());

    it("completes and calls tools", async () => {
      answer = { text: JSON.stringify(ANTHROPIC_ANSWER) };
      const messages = [
        { role: "system", content: "Be brief." },
        ...HELLO.messages,
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "toolu_0", name: "weather", arguments: { place: "Bern" } }],
        },
        { role: "tool", toolCallId: "toolu_0", content: "sunny" },
      ];
      expect(await run(`return ${ask({ messages, tools: [WEATHER] })}`)).to.deep.equal({
        message: { role: "assistant", content: "Hello there" },
        toolCalls: [{ id: "toolu_1", name: "weather", arguments: { place: "Bern" } }],
        usage: { inputTokens: 9, outputTokens: 3 },
        model: "claude-sonnet-4-5",
        finishReason: "tool_use",
      });
      const [{ path, headers, body }] = calls as [ProviderCall];
      expect([path, headers["x-api-key"], headers["anthropic-version"]]).to.deep.equal([
        "/v1/messages",
        KEY,
        "2023-06-01",
      ]);
      expect(body).to.deep.equal(ANTHROPIC_REQUEST);
    });

    it("streams", async () => {
      answer = { text: ANTHROPIC_STREAM };
      const parts = await run(
        `const parts = []; for await (const part of ${ask({ ...HELLO, stream: true })}) parts.push(part); return parts`,
      );
      expect(parts.map(({ text }: { text?: string }) => text)).to.deep.equal(["Hello", undefined]);
      expect(parts[1].completion).to.deep.include({
        toolCalls: [{ id: "toolu_1", name: "weather", arguments: { place: "Bern" } }],
        usage: { inputTokens: 9, outputTokens: 3 },
        finishReason: "tool_use",
      });
    });

    it("rejects calls that this provider does not offer, and does not count them", async () => {
      const count = await service.db.query("SELECT requests FROM ai_usage");
      for (const call of [`Svc.AI.embeddings({ input: "a" })`, `Svc.AI.image({ prompt: "a" })`]) {
        expect((await failing(call)).code).to.equal("POLICY");
      }
      expect([calls, await service.db.query("SELECT requests FROM ai_usage")]).to.deep.equal([[], count]);
    });
  });

  describe("errors have the codes of request()", () => {
    before(() => setAi());

    for (const [name, call] of [
      ["messages", "Svc.AI.completions({})"],
      ["messages", "Svc.AI.completions({ messages: [] })"],
      ["messages[0].role", `Svc.AI.completions({ messages: [{ role: "robot", content: "a" }] })`],
      ["messages[0].content", `Svc.AI.completions({ messages: [{ role: "user" }] })`],
      ["tools[0].name", `Svc.AI.completions({ messages: [{ role: "user", content: "a" }], tools: [{ name: "a b" }] })`],
      ["options can contain only model, messages", `Svc.AI.completions({ messages: [], apiKey: "x" })`],
      ['"model" must be one of', `Svc.AI.completions({ model: "other", messages: [{ role: "user", content: "a" }] })`],
      ["maxTokens", `Svc.AI.completions({ maxTokens: 0, messages: [{ role: "user", content: "a" }] })`],
      ["input", "Svc.AI.embeddings({})"],
      ["prompt", "Svc.AI.image({})"],
      ["file must be an object (got nothing)", "Svc.AI.transcribe()"],
      ["file.data", `Svc.AI.transcribe({ file: { name: "a", contentType: "audio/mpeg", data: "" } })`],
    ] as const) {
      it(`POLICY, naming the option: ${call}`, async () => {
        const { code, message } = await failing(call);
        expect(code).to.equal("POLICY");
        expect(message.startsWith(name), message).to.equal(true);
        expect(calls).to.deep.equal([]);
      });
    }

    it("POLICY without a setting or with an invalid one, names its field, and never shows the key", async () => {
      for (const [fields, path] of INVALID_SETTINGS) {
        await setAi(fields);
        const { code, message } = await failing(ask(HELLO));
        expect(code).to.equal("POLICY");
        expect(message).to.include(path).and.not.include(KEY);
      }
      await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__ai"] } });
      const { code, message } = await failing(ask(HELLO));
      const expected = "the app has no setting __ai; set it to an object {provider, key} in Studio";
      expect([code, message]).to.deep.equal(["POLICY", expected]);
      expect(calls).to.deep.equal([]);
      await setAi();
    });

    it("LIMIT for the provider's 429, TRANSPORT for its other errors and for invalid responses", async () => {
      const refusal = JSON.stringify({
        error: { message: `bad key ${KEY}`, type: "invalid_request_error", code: "invalid_api_key" },
      });
      for (const [providerAnswer, code] of [
        [{ status: 429, text: refusal }, "LIMIT"],
        [{ status: 401, text: refusal }, "TRANSPORT"],
        [{ status: 500, text: "{}" }, "TRANSPORT"],
        [{ text: "{}" }, "TRANSPORT"],
        [{ text: "{ broken" }, "TRANSPORT"],
      ] as const) {
        answer = providerAnswer;
        const failure = await failing(ask(HELLO));
        expect(failure.code).to.equal(code);
        expect(failure.message).to.not.include(KEY);
        if ("status" in providerAnswer)
          expect(failure.message).to.include(`${url}/v1/chat/completions answered ${providerAnswer.status}`);
      }
      // The provider chooses the type of its error, so the type may contain the key.
      const named = "key_of_lower_case_0123456789abcdef";
      await setAi({ key: named });
      answer = { status: 401, text: JSON.stringify({ error: { type: named } }) };
      expect((await failing(ask(HELLO))).message).to.match(/answered 401 \(«__ai»\)$/);
      await setAi({ baseUrl: "http://127.0.0.1:1/v1" });
      expect((await failing(ask(HELLO))).code).to.equal("TRANSPORT");
      await setAi();
    });

    it("INTEGRATION_UNAVAILABLE if the action is no server action", async () => {
      names += 1;
      const name = `any-${names}`;
      const code = `async function execute() { return Svc.AI.completions({}).catch((error) => error.code) }`;
      const body = { name, code, ...MANUAL, environment: "any" };
      await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
      const ran = await service.rest("POST", `/v3/apps/${service.appId}/actions/${name}/runWithResult`, { body: {} });
      expect(ran.body.result).to.equal("INTEGRATION_UNAVAILABLE");
      for (const as of ["editor", "api", "live", "viewer"] as const) {
        const restAnswer = await service.rest("POST", `/v1/apps/${service.appId}/ai/completions`, { as, body: HELLO });
        expect(restAnswer.http, as).to.equal(403);
      }
    });
  });

  it("masks a secret of the app that a provider sends back", async () => {
    await setAi();
    const body = { __other: "another-secret-0123456789" };
    await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body });
    const content = `The key is ${KEY}, and ${Buffer.from(KEY).toString("base64")}, and another-secret-0123456789.`;
    answer = { text: openAiAnswerWith(content) };
    const { content: seen } = (await run(`return (await ${ask(HELLO)}).message`)) as { content: string };
    expect(seen).to.include("«__ai»").and.to.include("«__other»");
    expect(seen).to.not.include("canary");
    await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__other"] } });
  });

  it("masks a secret of the app that is added while the provider answers", async () => {
    await setAi();
    const late = "late-secret-0123456789";
    answer = {
      text: "",
      live: (response) => {
        const added = service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { __late: late } });
        runInBackground(added.then(() => response.end(openAiAnswerWith(`It is ${late}.`))));
      },
    };
    const seen = await run(`return (await ${ask(HELLO)}).message.content`);
    expect(seen).to.equal("It is «__late».");
    await service.rest("DELETE", `/v1/apps/${service.appId}/settings`, { body: { keys: ["__late"] } });
  });

  it("applies the daily limits, also to concurrent calls", async () => {
    await service.db.query("DELETE FROM ai_usage");
    await setAi({ dailyRequests: 3 });
    answer = { text: JSON.stringify(OPENAI_ANSWER) };
    const code = `Promise.all(Array.from({ length: 6 }, () => ${ask(HELLO)}.then(() => "done", (error) => error.code)))`;
    const outcomes: string[] = await run(`return ${code}`);
    expect(outcomes.sort()).to.deep.equal(["LIMIT", "LIMIT", "LIMIT", "done", "done", "done"]);
    expect(calls).to.have.length(3);
    await service.db.query("DELETE FROM ai_usage");
    await setAi({ dailyTokens: 20 });
    const callOnce = async () => failing(ask({ ...HELLO, maxTokens: 1 }));
    // Each call uses 12 of the 20 tokens. After the first call, tokens are left, so the second call may start. The third may not.
    expect([await callOnce(), await callOnce(), (await callOnce()).code]).to.deep.equal(["none", "none", "LIMIT"]);
    const [used] = await service.db.query("SELECT requests::int, tokens::int FROM ai_usage");
    expect(used).to.deep.equal({ requests: 2, tokens: 24 });
    await setAi();
  });

  it("works as the documentation describes", async () => {
    await setAi();
    await service.db.query("DELETE FROM ai_usage");
    const block = blocksOf(readPage("docs/guides/ask-a-language-model.md")).find(({ text }) =>
      text.includes("<<'EOS'"),
    );
    const code = /<<'EOS'\n([\s\S]*?)\nEOS/.exec(block!.text)![1]!;
    answer = { text: JSON.stringify(OPENAI_ANSWER) };
    const body = { name: "summarize", code, ...MANUAL, access: "editors" };
    await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body });
    const path = `/v3/apps/${service.appId}/actions/summarize/runWithResult`;
    const ran = await service.rest("POST", path, { body: { text: "a" } });
    expect(ran.body.result).to.deep.equal({ summary: "Hello there", usage: { inputTokens: 9, outputTokens: 3 } });
  });
});
