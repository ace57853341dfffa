/** Tests `Svc.AI` over GraphQL. ai.test.ts runs this test with its service and its provider. */
import { expect } from "chai";
import { issueTaskToken } from "../harness/task-token.js";
import { OPENAI_ANSWER, OPENAI_CALLS } from "./ai-answers.js";
import type { TestProvider } from "./ai-streams.js";

const AI_MUTATION = `mutation ($app: Int!, $messages: [AiMessageInput!]!) {
  completed: createAiCompletion(appId: $app, options: { messages: $messages, maxTokens: 50 }) {
    answer {
      message { role content } toolCalls { id name arguments } usage { inputTokens outputTokens } model finishReason
    }
    failure { code message }
  }
  refused: createAiCompletion(appId: $app, options: { messages: [] }) { answer { model } failure { code message } }
}`;
const MUTATION_OF_OTHERS = `mutation ($app: Int!) {
  embedded: createAiEmbeddings(appId: $app, options: { input: ["a"] }) { answer { vectors usage { inputTokens } } failure { code } }
  drawn: createAiImage(appId: $app, options: { prompt: "a lamp" }) { answer { images { contentType data } } failure { code } }
  heard: createAiTranscription(appId: $app, options: { file: { contentType: "audio/mpeg", data: "AAAA" } }) {
    answer { text } failure { code }
  }
}`;

export function testAiOverGraphql(provider: TestProvider): void {
  it("gives typed answers and failures over GraphQL to the run of a server action, and to no other caller", async () => {
    const { service } = provider;
    await provider.run("return 1");
    const [{ id }] = await service.db.query("SELECT max(id)::int AS id FROM run");
    const as = await issueTaskToken(service.db, service.appId, id);
    const variables = { app: service.appId, messages: [{ role: "user", content: "Hello" }] };
    provider.answer = { text: JSON.stringify(OPENAI_ANSWER) };
    const { data, errors } = await service.graphql(AI_MUTATION, variables, { as });
    expect(errors).to.equal(undefined);
    expect(data.completed).to.deep.equal({
      answer: {
        message: { role: "assistant", content: "Hello there" },
        toolCalls: [],
        usage: { inputTokens: 9, outputTokens: 3 },
        model: "gpt-4o-mini-2024-07-18",
        finishReason: "stop",
      },
      failure: null,
    });
    expect(data.refused).to.deep.equal({
      answer: null,
      failure: { code: "POLICY", message: "messages must be an array of at least one message (got an array of 0)" },
    });
    expect(provider.calls).to.have.length(1);
    expect(provider.calls[0]!.body).to.deep.include({ max_tokens: 50, messages: variables.messages });
    provider.answer = { text: JSON.stringify(OPENAI_CALLS) };
    const called = await service.graphql(AI_MUTATION, variables, { as });
    expect(called.data.completed.answer.toolCalls).to.deep.equal([
      { id: "call_1", name: "weather", arguments: { place: "Bern" } },
    ]);

    provider.answer = {
      text: JSON.stringify({
        data: [{ embedding: [1, 0.5], b64_json: "AAAA" }],
        usage: { prompt_tokens: 4 },
        text: "Hi",
      }),
    };
    const others = await service.graphql(MUTATION_OF_OTHERS, variables, { as });
    expect(others.errors).to.equal(undefined);
    expect(others.data).to.deep.equal({
      embedded: { answer: { vectors: [[1, 0.5]], usage: { inputTokens: 4 } }, failure: null },
      drawn: { answer: { images: [{ contentType: "image/png", data: "AAAA" }] }, failure: null },
      heard: { answer: { text: "Hi" }, failure: null },
    });
    const refused = await service.graphql(AI_MUTATION, variables, { as: "editor" });
    expect(refused.errors!.map(({ extensions }) => extensions.status)).to.deep.equal(["FORBIDDEN", "FORBIDDEN"]);
  });
}
