import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { pino } from "pino";
import { createErrorReply } from "../../src/api/error-reply.js";
import { rows } from "../../src/data/database.js";
import { STATUS } from "../../src/errors.js";
import { AlertRules } from "../../src/operations/alerts/alert-rules.js";
import type { StoredDataSource } from "../../src/operations/data-sources/data-source-rows.js";
import {
  type EntryChangeCollector,
  EntryChangeTransactions,
  type EntryWritingCaller,
} from "../../src/operations/data-sources/entry-changes.js";
import { insertEntriesAsJson } from "../../src/operations/data-sources/entry-statements.js";
import type { Caller } from "../../src/rules/access.js";
import { untilLockWait } from "../harness/lock-waits.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";

/** Internal texts that no response may contain: files and lines of the server, SQL statements, and names of its libraries. */
const INTERNAL_TEXT =
  /node_modules|\/src\/|\.ts:\d|\.js:\d|\bat .+:\d+:\d+|SELECT |INSERT |QueryFailed|typeorm|fastify|FST_|apollo/i;

/** Tables that a foreign key refers to. Each has the expected error (status and message) of a request if the row is missing. */
const ERROR_BY_TABLE: Readonly<Record<string, string>> = {
  action: "ACTION_NOT_FOUND the app has no action with this ID or name",
  action_version: "VERSION_NOT_FOUND no such version",
  alert_rule: "NOT_FOUND no alert of this app has this ID",
  app: "APP_NOT_FOUND no such app",
  app_git: "NOT_FOUND no Git repository is connected to this app",
  app_version: "VERSION_NOT_FOUND no such version",
  credential: "NOT_FOUND no such token or session",
  data_source: "DATA_SOURCE_NOT_FOUND no such data source",
  data_source_version: "VERSION_NOT_FOUND no such version",
  kept_script: "OVERLOADED a script of the action's dependencies was removed during this request; try again",
  media_blob: "OVERLOADED the upload was discarded before its file was stored; send the file again",
  media_folder: "FOLDER_NOT_FOUND no such folder",
  notification: "NOTIFICATION_NOT_FOUND no such notification",
  oauth_client: "NOT_FOUND no such OAuth client",
  oauth_grant: "NOT_FOUND no such authorization",
  one_time_link: "NOT_FOUND no such link",
  organization: "NOT_FOUND no such organization",
  person: "NOT_FOUND no such person",
  push_subscription: "NOT_FOUND no such push subscription",
};

const SECRET = "s3cret-value-99";

describe("errors that callers get", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const expectFailure = ({ http, body }: Answer, status: keyof typeof STATUS) => {
    expect(body).to.include({ status });
    expect(http).to.equal(STATUS[status].http);
    expect(body.error).to.be.a("string").and.not.equal("");
    expect(JSON.stringify(body)).to.not.match(INTERNAL_TEXT);
  };

  /** Sends this text over TCP, because an HTTP client would not send invalid requests. Returns the response. */
  const sendRawText = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(service.url);
      let answer = "";
      const socket = connect(Number(port), hostname, () => socket.end(text));
      socket
        .on("data", (chunk) => (answer += chunk))
        .once("error", reject)
        .once("close", () => resolve(answer));
    });

  it("401: the same for no token, an unknown token and a malformed one", async () => {
    for (const as of [null, `svc_editor_${"A".repeat(43)}`, "nonsense"]) {
      expectFailure(await service.rest("GET", "/v3/apps/1/actions", { as }), "UNAUTHORIZED");
    }
  });

  it("403: a credential without the right, whether or not the resource exists", async () => {
    for (const path of ["/v3/apps/1/actions", "/v3/apps/1/actions/999", "/v3/apps/999/actions"]) {
      expectFailure(await service.rest("GET", path, { as: "live" }), "FORBIDDEN");
    }
  });

  it("404: an unknown address, an unknown action, an invalid ID", async () => {
    expectFailure(await service.rest("GET", "/nowhere"), "NOT_FOUND");
    expectFailure(await service.rest("PATCH", "/v3/apps/1/actions"), "NOT_FOUND");
    for (const id of ["999", "0", "-1", "1.5", "abc", "99999999999999999999", "9".repeat(5_000)]) {
      expectFailure(await service.rest("GET", `/v3/apps/1/actions/${id}`), "ACTION_NOT_FOUND");
    }
  });

  it("404: changes of an app that another request removes meanwhile", async () => {
    const code = "async function execute() {\n  return 1;\n}";
    const alert = { name: "a", condition: "failed", channel: "email", to: ["a@example.com"] };
    const changes = [
      ["POST", "/v1/apps/:id/data-sources", { name: "late", entries: [{ a: 1 }] }],
      ["PUT", "/v1/apps/:id/origins", { origins: ["https://shop.example"] }],
      ["POST", "/v1/apps/:id/alerts", alert],
      ["POST", "/v1/apps/:id/tokens", { kind: "api" }],
      ["POST", "/v1/apps/:id/settings", { title: "late" }],
      ["PUT", "/v1/apps/:id/manifest", { version: 1, settings: [{ key: "title" }] }],
      ["POST", "/v1/apps/:id/notifications", { data: { title: "late" } }],
      ["POST", "/v3/apps/:id/actions", { name: "late", code }],
    ] as const;
    for (const [method, path, body] of changes) {
      const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "removed" } })).body;
      const { answer } = await service.db.transaction(async (manager) => {
        await manager.query("DELETE FROM app WHERE id = $1", [app.id]);
        const answer = service.rest(method, path.replace(":id", app.id), { as: "admin", body });
        await untilLockWait(manager, answer);
        return { answer };
      });
      expectFailure(await answer, "APP_NOT_FOUND");
    }
  });

  it("the error of the missing row and a line in the log: a row refers to a row that another request removes meanwhile", async () => {
    const keys = await rows<{ name: string; table: string }>(
      service.db,
      "SELECT conname AS name, confrelid::regclass::text AS table FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 ORDER BY 1",
    );
    const lines: { level: number; foreignKey?: string }[] = [];
    const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
    const errors = keys.map(({ name, table }) => {
      const violation = Object.assign(new Error("no such row"), { code: "23503", constraint: name });
      const { http, headers, body } = createErrorReply(violation, log);
      expect([http, "Retry-After" in headers], name).to.deep.equal(
        body.status === "OVERLOADED" ? [503, true] : [404, false],
      );
      return `${name} -> ${table}: ${body.status} ${body.error}`;
    });
    expect(errors).to.deep.equal(keys.map(({ name, table }) => `${name} -> ${table}: ${ERROR_BY_TABLE[table]}`));
    expect(lines.map(({ level, foreignKey }) => [level, foreignKey])).to.deep.equal(
      keys.map(({ name }) => [pino.levels.values["warn"], name]),
    );
  });

  it("the error of the missing row: an alert whose audit entry refers to a row that another request removes meanwhile", async () => {
    const violation = Object.assign(new Error("no such row"), {
      code: "23503",
      constraint: "audit_entry_credential_id_fkey",
    });
    const db = { transaction: () => Promise.reject(violation) };
    const alerts = new AlertRules({ db } as unknown as ConstructorParameters<typeof AlertRules>[0]);
    const body = { name: "a", condition: "failed", channel: "email", to: ["a@example.com"] };
    const error = await alerts.create({} as Caller, 1, body).catch((caught: unknown) => caught);
    const { body: answer } = createErrorReply(error, pino({ level: "silent" }));
    expect(answer).to.deep.equal({ status: "NOT_FOUND", error: "no such token or session" });
  });

  it("404 and a line in the log: a commit of entries that refers to a missing data source or app", async () => {
    const messenger = { createCollector: async () => ({}) };
    const parts = { db: service.db, messenger, quotaBytes: 0 } as unknown as ConstructorParameters<
      typeof EntryChangeTransactions
    >[0];
    const changes = new EntryChangeTransactions(parts);
    const source = { id: 999_999_999, appId: 999_999_999, columns: [] } as unknown as StoredDataSource;
    const lines: { foreignKey?: string }[] = [];
    const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
    const statusAfter = async (work: (change: EntryChangeCollector) => Promise<unknown>) => {
      const error = await changes.commit(source, {} as EntryWritingCaller, work).catch((caught: unknown) => caught);
      return createErrorReply(error, log).body.status;
    };
    const insertUsage = "INSERT INTO media_usage (app_id, bytes) VALUES ($1, 0)";
    const statuses = [
      await statusAfter(({ executor }) => insertEntriesAsJson(executor, source, ["{}"])),
      await statusAfter(({ executor }) => rows(executor, insertUsage, [source.appId])),
    ];
    expect(statuses).to.deep.equal(["DATA_SOURCE_NOT_FOUND", "APP_NOT_FOUND"]);
    expect(lines.map(({ foreignKey }) => foreignKey)).to.deep.equal([
      "data_source_entry_app_id_data_source_id_fkey",
      "media_usage_app_id_fkey",
    ]);
  });

  it("503: a request whose transaction PostgreSQL ended because of a deadlock; the caller can repeat it", async () => {
    const lock = "SELECT pg_advisory_xact_lock($1)";
    const firstLocks = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const lockBoth = (first: number, second: number) =>
      service.db.transaction(async (manager) => {
        await manager.query("SET LOCAL deadlock_timeout = '10ms'");
        await manager.query(lock, [first]);
        firstLocks[first]!.resolve();
        await firstLocks[second]!.promise;
        await manager.query(lock, [second]);
      });
    const results = await Promise.allSettled([lockBoth(0, 1), lockBoth(1, 0)]);
    const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    expect(errors).to.have.length(1);
    const { http, headers, body } = createErrorReply(errors[0], pino({ level: "silent" }));
    expect([http, headers, body.status]).to.deep.equal([503, { "Retry-After": "1" }, "OVERLOADED"]);
  });

  it("400: a change of editors without a user ID", async () => {
    for (const method of ["POST", "DELETE"]) {
      expectFailure(await service.rest(method, "/v1/apps/1/editors", { body: {} }), "REQUEST_INVALID");
    }
  });

  it("no error: an OPTIONS request that is no preflight", async () => {
    expect((await service.rest("OPTIONS", "/v3/apps/1/actions")).http).to.equal(204);
  });

  it("413: a body over 1 MB", async () => {
    const body = { name: "x".repeat(1024 * 1024) };
    expectFailure(await service.rest("POST", "/v3/apps/1/actions", { body }), "PAYLOAD_TOO_LARGE");
  });

  it("400: a body that is no JSON; the error does not repeat its text", async () => {
    const answer = await service.rest("POST", "/v3/apps/1/actions", { body: `{"a": ${SECRET}` });
    expectFailure(answer, "REQUEST_INVALID");
    expect(answer.body.error).to.not.contain(SECRET);
  });

  it("400: a content type that is not JSON", async () => {
    for (const type of ["text/plain", "application/xml", "multipart/form-data; boundary=x", "nonsense"]) {
      const call = { body: "name=x", headers: { "content-type": type } };
      expectFailure(await service.rest("POST", "/v3/apps/1/actions", call), "REQUEST_INVALID");
    }
  });

  it("400: a URL with an invalid escape", async () => {
    expectFailure(await service.rest("GET", "/v3/apps/1/actions/%E0%A4%A"), "REQUEST_INVALID");
  });

  it("none for a limit above the maximum of a list: the maximum applies", async () => {
    for (const limit of ["1000000", "9".repeat(15), "9".repeat(16), "9".repeat(40)]) {
      expect((await service.rest("GET", `/v3/apps/1/actions?limit=${limit}`)).http, limit).to.equal(200);
    }
  });

  it("name the expected and the received type, and for invalid JSON the position but none of its text", async () => {
    const headers = { "Content-Type": "application/json" };
    const wrong: [string, string, string | undefined, string][] = [
      ["GET", "/v3/apps/1/actions?limit=abc", undefined, 'limit must be a whole number of 0 or more (got "abc")'],
      [
        "GET",
        "/v3/apps/1/actions?limit=1&limit=2",
        undefined,
        "limit must be a whole number of 0 or more (got an array of 2)",
      ],
      [
        "GET",
        "/v3/apps/1/actions/%E0%A4%A",
        undefined,
        "the URL is not valid; after each %, it must have two hexadecimal digits, and the decoded bytes must be UTF-8",
      ],
      ["POST", "/v3/apps/1/actions", '{"name": "secret", oops}', "the body is not valid JSON (at position 19)"],
      ["POST", "/v3/apps/1/actions", "secret", "the body is not valid JSON"],
    ];
    for (const [method, path, body, error] of wrong) {
      const auth = { "Auth-token": service.tokens.editor, ...headers };
      const answer = await fetch(service.url + path, { method, headers: auth, ...(body !== undefined && { body }) });
      expect([answer.status, await answer.json()], path).to.deep.equal([400, { status: "REQUEST_INVALID", error }]);
    }
  });

  it("400: an invalid Idempotency-Key", async () => {
    const call = { body: {}, headers: { "idempotency-key": "two words" } };
    expectFailure(await service.rest("POST", "/v3/apps/1/actions/x/run", call), "REQUEST_INVALID");
  });

  const unreadable: [string, string][] = [
    ["headers of more than 16 KB", `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`],
    ["what is no HTTP", "hello there\r\n\r\n"],
    ["a request without the header Host", "GET / HTTP/1.1\r\n\r\n"],
    [
      "a websocket without a key",
      "GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ],
  ];
  for (const [title, text] of unreadable) {
    it(`400: ${title}, with the same form of body as any other error`, async () => {
      const [head = "", body = ""] = (await sendRawText(text)).split("\r\n\r\n");
      expect(head).to.match(/^HTTP\/1\.1 400 /);
      expectFailure({ http: 400, headers: new Headers(), body: JSON.parse(body) }, "REQUEST_INVALID");
    });
  }

  it("the service survives an upgrade request with an invalid address", async () => {
    const lines = ["Host: x", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
    const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
    const answer = await sendRawText(["GET // HTTP/1.1", ...lines, key, "", ""].join("\r\n"));
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head).to.match(/^HTTP\/1\.1 404 /);
    expectFailure({ http: 404, headers: new Headers(), body: JSON.parse(body) }, "NOT_FOUND");
    expect((await fetch(`${service.url}/health/live`)).status).to.equal(200);
  });

  const ignored: [string, Record<string, string>][] = [
    ["an upgrade to HTTP/2, as Java's HttpClient does", { Connection: "Upgrade, HTTP2-Settings", Upgrade: "h2c" }],
    ["an unknown expectation", { Expect: "other" }],
  ];
  for (const [title, ignoredHeaders] of ignored) {
    it(`none if the client asks for ${title}: the service ignores it`, async () => {
      const headers = { "Auth-token": service.tokens.editor, "Content-Type": "application/json", ...ignoredHeaders };
      const outgoing = request(`${service.url}/v1/apps/1/settings`, { method: "POST", headers });
      const [answer] = await once(outgoing.end(JSON.stringify({ [title]: 1 })), "response");
      const body = await text(answer);
      expect(answer.statusCode, body).to.equal(200);
      expect(JSON.parse(body)).to.include({ [title]: 1 });
    });
  }

  const CREATE = "mutation ($data: CreateActionInput!) { createAction(appId: 1, data: $data) { id } }";
  const EVENT = "mutation ($event: LogEventInput!) { addLogEvent(appId: 1, event: $event) { id } }";
  const documents: [string, string, object][] = [
    ["that does not parse", "query {", {}],
    ["with a field that is not there", `{ nothing }`, {}],
    ["without an argument that must be there", "{ actions { total } }", {}],
    ["with a value of the wrong type", `{ action(appId: "${SECRET}", id: 1) { id } }`, {}],
    ["with a variable of the wrong type", "query Q($a: Int!) { action(appId: $a, id: 1) { id } }", { a: SECRET }],
    ["with a variable that is missing", "query Q($a: Int!) { action(appId: $a, id: 1) { id } }", {}],
    ["with a field of a wrong type in a variable", CREATE, { data: { active: SECRET } }],
    ["with no value of an enum in a variable", CREATE, { data: { triggers: [{ trigger: SECRET }] } }],
    ["with no value of an enum", `mutation { createAction(appId: 1, data: { environment: "${SECRET}" }) { id } }`, {}],
    ["with no object where one must be", CREATE, { data: SECRET }],
    ["with a number in place of a text", `mutation { createAction(appId: 1, data: { name: 1 }) { id } }`, {}],
    ["with no whole number", EVENT, { event: { type: "a", userId: SECRET } }],
    ["with a field that an input has not", EVENT, { event: { unknown: SECRET } }],
    ["with a string out of place", `query "${SECRET}"`, {}],
    ["with a string where a name must be", `{ action("${SECRET}": 1) { id } }`, {}],
    ["of too many tokens", `{ ${"a ".repeat(6_000)} }`, {}],
  ];
  for (const [title, query, variables] of documents) {
    it(`GraphQL: a document ${title} is REQUEST_INVALID; its values are not repeated`, async () => {
      const { errors } = await service.graphql(query, variables);
      expect(errors).to.not.equal(undefined);
      for (const { message, extensions } of errors!) {
        expect(extensions.status).to.equal("REQUEST_INVALID");
        expect(message).to.be.a("string").and.not.equal("");
      }
      expect(JSON.stringify(errors)).to.not.contain(SECRET).and.to.not.match(INTERNAL_TEXT);
    });
  }

  for (const [data, named] of [
    [{ active: "yes" }, '"data.active"; Boolean cannot represent a non boolean value'],
    [{ triggers: [{ trigger: "x" }] }, '"data.triggers[0].trigger"; the value does not exist in "TriggerType" enum'],
    [{ colour: 1 }, 'Field "colour" is not defined by type "CreateActionInput"'],
  ] as const) {
    it(`GraphQL: the error of an invalid value names ${named}`, async () => {
      const { errors } = await service.graphql(CREATE, { data });
      expect(errors![0].message).to.include(named);
    });
  }

  it("GraphQL: an error has the status that REST has", async () => {
    const ask = (as: string | null) => service.graphql("{ action(appId: 1, id: 999) { id } }", {}, { as });
    for (const [as, status] of [
      [null, "UNAUTHORIZED"],
      ["live", "FORBIDDEN"],
      ["editor", "ACTION_NOT_FOUND"],
    ] as const) {
      const { errors } = await ask(as);
      expect(errors![0].extensions).to.deep.equal({ status });
    }
  });

  it("GraphQL: a body that is no request is REQUEST_INVALID", async () => {
    for (const body of [{}, [], { query: 1 }, "{", { query: "{ __typename }", variables: "x" }]) {
      const { http, body: answer } = await service.rest("POST", "/graphql", { body });
      expect(http).to.equal(400);
      const status = answer.status ?? answer.errors?.[0].extensions.status;
      expect(status).to.equal("REQUEST_INVALID");
      expect(JSON.stringify(answer)).to.not.match(INTERNAL_TEXT);
    }
  });
});
