/** Tests registered GraphQL documents, and an instance on which app users can send only registered documents. */
import { createHash } from "node:crypto";
import { expect } from "chai";
import { ClientTriggers } from "../../src/web/runtime/documents.js";
import { Apps } from "../../src/web/studio/documents.js";
import { startTestService, type TestService } from "../harness/service.js";

const idOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

describe("documents that the service knows", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api", GRAPHQL_DOCUMENTS: "persisted" });
  });
  after(() => service.stop());

  const ask = (body: object, as?: string) => service.rest("POST", "/graphql", { body, ...(as && { as }) });
  const first = (query: string, documentId: string | undefined, as: string) =>
    // biome-ignore lint/suspicious/noExplicitAny: the type depends on the query
    new Promise<any>((resolve) => {
      const client = service.socket(as);
      const done = (value: unknown) => void Promise.resolve(client.dispose()).then(() => resolve(value));
      const extensions = documentId === undefined ? {} : { extensions: { documentId } };
      client.subscribe(
        { query, variables: { appId: service.appId }, ...extensions },
        { next: done, error: done, complete: () => undefined },
      );
    });

  it("are requested by their hash, over HTTP and the websocket", async () => {
    const { http, body } = await ask({ documentId: idOf(Apps) });
    expect([http, body.data.apps[0].id]).to.deep.equal([200, service.appId]);
    const received = await first("", idOf(ClientTriggers), "live");
    expect(received.data).to.have.property("clientTriggers");
  });

  it("cannot be replaced by a client; an unknown hash and an unknown document get different errors", async () => {
    for (const documentId of [idOf("{ __typename }"), "sha256:", 7, Apps]) {
      const { http, body } = await ask({ documentId });
      expect(http).to.equal(400);
      expect(body.errors[0].message).to.contain('documentId must be "sha256:" followed by');
      expect(body.errors[0].extensions.status).to.equal("REQUEST_INVALID");
    }
    // If a request has `query` and `documentId`, the service executes `query`.
    const { body } = await ask({ documentId: idOf(Apps), query: "{ __typename }" });
    expect(body.data).to.deep.equal({ __typename: "Query" });
  });

  it("are the only ones of app users if the operator says so; people who build apps can send others", async () => {
    for (const as of ["viewer", "live"]) {
      const { http, body } = await ask({ query: "{ __typename }" }, as);
      expect([http, body.data]).to.deep.equal([200, undefined]);
      expect(body.errors[0].message).to.contain("only the GraphQL documents of the service's client library");
      const [refused] = await first("subscription { clientTriggers(appId: 1) { __typename } }", undefined, as);
      expect(refused.message).to.equal(body.errors[0].message);
      const received = await first(ClientTriggers, undefined, as);
      expect(received.data, JSON.stringify(received)).to.have.property("clientTriggers");
    }
    for (const as of ["editor", "admin", "api"]) {
      expect((await ask({ query: "{ __typename }" }, as)).body.data).to.deep.equal({ __typename: "Query" });
    }
  });
});
