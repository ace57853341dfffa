import { expect } from "chai";
import { serverAudits } from "graphql-http";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

const RESPONSE = "application/graphql-response+json";
const MEDIA_TYPES = ["application/json", RESPONSE] as const;

const ACTION = "query Action($id: Int!) { action(appId: 1, id: $id) { id name } }";
const CODE = "async function execute(context) { return context.payload; }";

describe("GraphQL over HTTP", () => {
  let service: TestService;
  let id: number;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RUNNER_CONCURRENCY: "1" });
    const { body } = await service.rest("POST", "/v3/apps/1/actions", {
      body: { name: "echo", code: CODE, active: true, triggers: [{ trigger: "manual" }] },
    });
    id = body.action.id;
  });
  after(() => service.stop());

  const fetchAuthorized: typeof fetch = (url, init) =>
    fetch(url, { ...init, headers: { ...init?.headers, "auth-token": service.tokens.editor } });
  for (const { id: name, name: title } of serverAudits({ url: "http://127.0.0.1" })) {
    it(`passes the audit of graphql-http: ${name}, ${title}`, async () => {
      const audits = serverAudits({ url: `${service.url}/graphql`, fetchFn: fetchAuthorized });
      const result = await audits.find((audit) => audit.id === name)!.fn();
      expect(result.status, "reason" in result ? result.reason : "").to.equal("ok");
    });
  }

  function address(parameters: Record<string, unknown>): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      search.set(name, typeof value === "string" ? value : JSON.stringify(value));
    }
    return `/graphql?${search}`;
  }

  it("answers a GET with variables, an operation name and extensions", async () => {
    const parameters = { query: ACTION, operationName: "Action", variables: { id }, extensions: {} };
    for (const accept of MEDIA_TYPES) {
      const { http, headers, body } = await service.rest("GET", address(parameters), { headers: { accept } });
      expect([http, body]).to.deep.equal([200, { data: { action: { id, name: "echo" } } }]);
      expect(headers.get("content-type")).to.equal(`${accept}; charset=utf-8`);
    }
  });

  it("rejects variables of a GET that are no JSON object", async () => {
    for (const variables of ["{", "[]", '"a"']) {
      const { http, body } = await service.rest("GET", address({ query: ACTION, variables }));
      expect(body.errors[0].extensions.status, variables).to.equal("REQUEST_INVALID");
      expect(http).to.be.within(200, 400);
    }
  });

  const expectError = ({ http, headers, body }: Answer, code: number, status: string, accept: string) => {
    expect(Object.keys(body)).to.deep.equal(["errors"]);
    expect(body.errors[0].message).to.be.a("string").and.not.equal("");
    expect(body.errors[0].extensions.status).to.equal(status);
    expect([http, headers.get("content-type")]).to.deep.equal([code, `${accept}; charset=utf-8`]);
  };

  const unreadable: [string, number, string, object][] = [
    ["malformed JSON", 400, "REQUEST_INVALID", { body: "{" }],
    ["another content type", 400, "REQUEST_INVALID", { body: "a=b", headers: { "content-type": "text/plain" } }],
    ["a form", 400, "REQUEST_INVALID", { body: "", headers: { "content-type": "multipart/form-data; boundary=x" } }],
    ["a body over 1 MB", 413, "PAYLOAD_TOO_LARGE", { body: { query: "x".repeat(1_100_000) } }],
    ["a malformed Idempotency-Key", 400, "REQUEST_INVALID", { body: {}, headers: { "idempotency-key": "a b" } }],
  ];
  for (const accept of MEDIA_TYPES) {
    for (const [title, code, status, call] of unreadable) {
      it(`answers ${title} with ${code} and GraphQL's errors as ${accept}`, async () => {
        const { headers, ...rest } = call as { headers?: object };
        const answer = await service.rest("POST", "/graphql", { ...rest, headers: { ...headers, accept } });
        expectError(answer, code, status, accept);
      });
    }

    it(`answers a cookie from a page of another origin with 403 and GraphQL's errors as ${accept}`, async () => {
      const headers = { accept, cookie: `auth_token=${service.tokens.editor}`, origin: "https://evil.example" };
      const answer = await service.rest("POST", "/graphql", { as: null, body: { query: "{ __typename }" }, headers });
      expect(answer.http).to.equal(403);
      expect(answer.body.errors[0].extensions.status).to.be.oneOf(["FORBIDDEN", "CROSS_SITE_REQUEST"]);
    });

    it(`answers every other method with 405, the allowed methods, and GraphQL's errors as ${accept}`, async () => {
      for (const method of ["PUT", "DELETE", "PATCH"]) {
        const answer = await service.rest(method, "/graphql", {
          body: { query: "{ __typename }" },
          headers: { accept },
        });
        expectError(answer, 405, "METHOD_NOT_ALLOWED", accept);
        expect(answer.headers.get("allow")).to.equal("GET, POST");
      }
    });

    it(`rejects a subscription by POST and by GET, and names the right protocol, as ${accept}`, async () => {
      const query = "subscription { actionLogAdded(appId: 1) { id } }";
      const code = accept === RESPONSE ? 400 : 200;
      for (const answer of [
        await service.rest("POST", "/graphql", { body: { query }, headers: { accept } }),
        await service.rest("GET", address({ query }), { headers: { accept } }),
      ]) {
        expectError(answer, code, "REQUEST_INVALID", accept);
        expect(answer.body.errors[0].message).to.contain("websocket");
      }
    });

    it(`rejects a mutation by GET as ${accept}, and runs nothing`, async () => {
      const query = `mutation { runAction(appId: 1, nameOrId: "echo") { runId } }`;
      const before = await service.db.query("SELECT count(*)::int AS n FROM run");
      expectError(
        await service.rest("GET", address({ query }), { headers: { accept } }),
        405,
        "METHOD_NOT_ALLOWED",
        accept,
      );
      expect(await service.db.query("SELECT count(*)::int AS n FROM run")).to.deep.equal(before);
    });

    it(`sends errors as ${accept} if the client also requires the charset`, async () => {
      const call = { body: { query: "{" }, headers: { accept: `${accept}; charset=utf-8` } };
      expectError(
        await service.rest("POST", "/graphql", call),
        accept === RESPONSE ? 400 : 200,
        "REQUEST_INVALID",
        accept,
      );
    });

    it(`answers a caller without a credential as ${accept}`, async () => {
      const call = { as: null, body: { query: "{ apps { id } }" }, headers: { accept } };
      const code = accept === RESPONSE ? 401 : 200;
      expectError(await service.rest("POST", "/graphql", call), code, "UNAUTHORIZED", accept);
    });
  }

  for (const accept of ["text/html", "image/*", "application/json;q=0"]) {
    it(`rejects a mutation whose response the client does not accept, and runs nothing: ${accept}`, async () => {
      const query = `mutation { runAction(appId: 1, nameOrId: "echo") { runId } }`;
      const before = await service.db.query("SELECT count(*)::int AS n FROM run");
      const answer = await service.rest("POST", "/graphql", { body: { query }, headers: { accept } });
      expectError(answer, 406, "REQUEST_INVALID", "application/json");
      expect(answer.body.errors[0].message).to.contain(`got "${accept}"`);
      expect(await service.db.query("SELECT count(*)::int AS n FROM run")).to.deep.equal(before);
    });
  }

  describe("an idempotency key over GraphQL", () => {
    const runs = async () => (await service.db.query("SELECT count(*)::int AS n FROM run"))[0].n;

    const runField = (alias: string, payload: string, more = "") =>
      `${alias}: runActionWithResult(appId: 1, nameOrId: "echo", payload: ${payload}${more}) { runId result }`;
    const ask = (query: string, headers = {}) => service.graphql(query, {}, { headers });

    const two: [string, string][] = [
      ["two runs", `mutation { ${runField("a", "{n: 1}")} ${runField("b", "{n: 2}")} }`],
      [
        "two runs, one in a fragment",
        `mutation { ${runField("a", "{}")} ...F } fragment F on Mutation { ${runField("b", "{}")} }`,
      ],
      [
        "a run and a message",
        `mutation { ${runField("a", "{}")} sendSms(appId: 1, message: {to: "+41790000000", body: "a"}) { id } }`,
      ],
    ];
    for (const [title, query] of two) {
      it(`is rejected as a header for ${title}, before anything runs`, async () => {
        const before = await runs();
        const { data, errors } = await ask(query, { "idempotency-key": `key-${title.length}` });
        expect(data).to.equal(undefined);
        expect(errors![0].extensions.status).to.equal("REQUEST_INVALID");
        expect(errors![0].message).to.contain("idempotencyKey");
        expect(await runs()).to.equal(before);
      });
    }

    it("applies to one field as its argument: a repeat gets the same run, the other field has its own run", async () => {
      const firstField = runField("a", "{n: 1}", ', idempotencyKey: "first"');
      const secondField = runField("b", "{n: 2}", ', idempotencyKey: "second"');
      const query = `mutation { ${firstField} ${secondField} }`;
      const { data: first } = await ask(query);
      expect([first.a.result, first.b.result]).to.deep.equal([{ n: 1 }, { n: 2 }]);
      const { data: again } = await ask(query, { "idempotency-key": "unused" });
      expect(again).to.deep.equal(first);
    });

    it("is REQUEST_INVALID if it is malformed, as in a header", async () => {
      const { errors } = await ask(`mutation { ${runField("a", "{}", ', idempotencyKey: "two words"')} }`);
      expect(errors![0].extensions.status).to.equal("REQUEST_INVALID");
    });
  });
});

describe("several root fields in one document", () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner", RATE_LIMIT_RUN: "3", RUNNER_CONCURRENCY: "1" });
    await service.rest("POST", "/v3/apps/1/actions", {
      body: { name: "echo", code: CODE, active: true, triggers: [{ trigger: "manual" }] },
    });
  });
  after(() => service.stop());

  it("keep the results of fields that succeed; a field that fails is null, with its path", async () => {
    const names = Array.from({ length: 5 }, (_, index) => `run${index}`);
    const fields = names.map((name) => `${name}: runAction(appId: 1, nameOrId: "echo") { runId }`);
    const { data, errors } = await service.graphql(`mutation { ${fields.join(" ")} }`);
    expect(names.map((name) => typeof data[name]?.runId)).to.deep.equal([
      ...Array(3).fill("number"),
      ...Array(2).fill("undefined"),
    ]);
    expect([data.run3, data.run4]).to.deep.equal([null, null]);
    expect(errors!.map(({ path, extensions }) => [path, extensions.status])).to.deep.equal([
      [["run3"], "RATE_LIMIT_EXCEEDED"],
      [["run4"], "RATE_LIMIT_EXCEEDED"],
    ]);
  });

  it("keep what was read if another query fails", async () => {
    const { data, errors } = await service.graphql(
      "{ apps { id } action(appId: 1, id: 999) { id } actions(appId: 1) { total: pagination { total } } }",
    );
    expect(data.apps).to.deep.equal([{ id: 1 }]);
    expect(data.action).to.equal(null);
    expect(data.actions).to.not.equal(null);
    expect(errors!.map(({ path }) => path)).to.deep.equal([["action"]]);
  });
});
