/**
 * Puts a test value into each kind of setting, and reads routes with each kind of credential. No response may contain a value that the
 * caller cannot read.
 */
import { expect } from "chai";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { issueTaskToken } from "../harness/task-token.js";
import { until } from "../harness/until.js";
import { mediaOf } from "../media/support.js";
import { getPaths, type Ids, queries, subscriptions } from "./exits.js";

const CANARY = { public: "canary-public-7f3a", private: "canary-private-91bc", protected: "canary-protected-e5d0" };
const ACTION = { name: "quiet", environment: "server", active: true, triggers: [{ trigger: "manual" }] };
const CODE = "async function execute(context) { console.log('at work'); return Object.keys(context.settings).length; }";

/** Kinds of credentials that can read private settings. */
const READERS = ["editor", "admin", "api", "task"];
/** Matches the routes and queries that return private settings. */
const PRIVATE_READ = /\/settings$|\/versions\/\d+$|\{ settings\(|\{ appVersion\(/;

/** Matches the routes and queries that an administrator's token cannot read: those of an account, and those of things that do not exist. */
const UNREADABLE = /^\/v1\/auth\/|^\/nothing\/here$|\/declarations|^\{ (auth|passkeys|packageDeclarations)/;

/** Tables of the items whose IDs the paths and queries contain. */
const ITEM_TABLES = [
  "action",
  "action_version",
  "app_version",
  "data_source",
  "data_source_entry",
  "alert_rule",
  "message",
  "media_folder",
  "media_file",
];
/** Gives the next row of each table the same ID, because most paths and queries contain only the name `id`. */
const ALIGN_IDS = `
  WITH item AS (SELECT pg_get_serial_sequence(name, 'id')::regclass AS sequence FROM unnest($1::text[]) AS name)
  SELECT setval(sequence, (SELECT coalesce(max(pg_sequence_last_value(sequence)), 1) FROM item)) FROM item`;

const SUBSCRIBING_CREDENTIALS = ["editor", "admin", "api"];

interface SentText {
  kind: string;
  exit: string;
  text: string;
}

const forms = (canary: string): string[] =>
  [canary, canary.slice(0, -1), canary.slice(1)].flatMap((part) => [
    part,
    Buffer.from(part).toString("base64").replace(/=+$/, "").slice(0, -1),
    Buffer.from(part).toString("hex"),
  ]);

const holds = (text: string, canary: string): boolean => forms(canary).some((form) => text.includes(form));

const isFrame = ({ exit, text }: SentText): boolean => exit.startsWith("subscription") && text.includes('"data"');

describe("settings in every response", () => {
  let service: TestService;
  let tokens: Record<string, string | null>;
  let ids: Ids;
  const sentTexts: SentText[] = [];

  async function older(versionId: number): Promise<void> {
    await service.db.query(
      `INSERT INTO app_version_setting (app_version_id, key, value, sealed)
       SELECT $1::bigint, key, value, sealed FROM setting WHERE app_id = $2 AND key LIKE '\\_\\_%'`,
      [versionId, service.appId],
    );
  }

  /** Creates an item of each kind whose ID is in a path. Returns their IDs. */
  async function createItems(app: string): Promise<number[]> {
    const post = async (path: string, body: object) => (await service.rest("POST", app + path, { body })).body;
    const source = { name: "People", indexes: [{ columns: ["Name"] }], entries: [{ Name: "Ada" }] };
    const to = ["a@example.com"];
    const { dataSource } = await post("/data-sources", source);
    const { alert } = await post("/alerts", { name: "failures", condition: "failed", channel: "email", to });
    const message = await post("/communicate/email", { to: [{ email: to[0] }], subject: "Hello", text: "Hello" });
    const media = mediaOf(service);
    const file = await media.upload("hello.txt", "hello");
    return [dataSource.id, alert.id, message.id, await media.folder("papers"), file.id];
  }

  before(async () => {
    service = await useSharedService("api,runner");
    const app = `/v1/apps/${service.appId}`;
    const { body: unauthorizedUser } = await service.rest("POST", "/v1/admin/users", {
      as: "admin",
      body: { firstName: "A", lastName: "Stranger", email: "stranger@example.com" },
    });
    const task = await issueTaskToken(service.db, service.appId);
    tokens = { ...service.tokens, task, stranger: unauthorizedUser.token, none: null };
    await service.rest("POST", `${app}/settings`, {
      body: { open: CANARY.public, _own: { deep: CANARY.private }, __kept: [CANARY.protected] },
    });
    await service.db.query(ALIGN_IDS, [ITEM_TABLES]);
    const { body: made } = await service.rest("POST", `${app}/versions`);
    await older(made.version.id);
    const actions = `/v3/apps/${service.appId}/actions`;
    const { body: created } = await service.rest("POST", actions, { body: { ...ACTION, code: CODE } });
    const { body: run } = await service.rest("POST", `${actions}/quiet/runWithResult`);
    expect(run.result).to.equal(2);
    const { id } = created.action;
    await service.rest("POST", `${app}/publish`);
    await service.rest("POST", `${actions}/${id}/publish`);
    expect([made.version.id, ...(await createItems(app))]).to.deep.equal(Array(6).fill(id));
    const [{ organizationId }] = await service.db.query(
      'SELECT organization_id AS "organizationId" FROM app WHERE id = $1',
      [service.appId],
    );
    ids = { organizationId, appId: service.appId, id, actionId: id, versionId: made.version.id, runId: run.runId };
  });
  after(() => service.stop());

  const recordText = (kind: string, exit: string, answer: unknown) =>
    sentTexts.push({ kind, exit, text: typeof answer === "string" ? answer : JSON.stringify(answer) });

  it("are read by every GET and every query", async () => {
    for (const [index, [kind, as]] of Object.entries(tokens).entries()) {
      const isAdmin = kind === "admin";
      const sampledPaths = isAdmin ? getPaths(ids) : sampleOf(getPaths(ids), index, 6);
      // Always reads the paths whose responses contain settings, because the last tests expect these values.
      const paths = getPaths(ids).filter(
        (path) => sampledPaths.includes(path) || /settings|env\.js|versions/.test(path),
      );
      for (const path of paths) {
        const { http, headers, body } = await service.rest("GET", path, { as });
        recordText(kind, path, [http, [...headers], body]);
        expect(http, `${kind} ${path}`).to.be.lessThan(isAdmin && !UNREADABLE.test(path) ? 300 : 500);
      }
      for (const query of isAdmin ? queries(ids) : sampleOf(queries(ids), index, 6)) {
        const response = await service.graphql(query, {}, { as });
        recordText(kind, query, response);
        if (isAdmin && !UNREADABLE.test(query)) expect(response.errors, query).to.equal(undefined);
      }
    }
  });

  it("are written, refused and echoed by what writes", async () => {
    const app = `/v1/apps/${service.appId}`;
    const secret = { __kept: CANARY.protected, _own: { deep: CANARY.private } };
    const faulty = [{ ...secret, "": 1 }, { ...secret, constructor: 1 }, [secret], CANARY.protected];
    for (const [kind, as] of Object.entries(tokens)) {
      for (const body of [{}, ...faulty]) {
        for (const method of ["POST", "DELETE"]) {
          recordText(
            kind,
            `${method} ${app}/settings`,
            (await service.rest(method, `${app}/settings`, { as, body })).body,
          );
        }
        recordText(kind, "POST secure", (await service.rest("POST", `${app}/settings/secure`, { as, body })).body);
        recordText(kind, "PUT app", (await service.rest("PUT", app, { as, body: { settings: body } })).body);
        recordText(
          kind,
          "PUT admin",
          (await service.rest("PUT", `/v1/admin${app.slice(3)}`, { as, body: { settings: body } })).body,
        );
        const document = `mutation($s: JSON!) { setSettings(appId: ${service.appId}, settings: $s) }`;
        recordText(kind, "setSettings", await service.graphql(document, { s: body }, { as }));
        recordText(
          kind,
          "a faulty variable",
          await service.graphql("query($s: Int!) { settings(appId: $s) }", { s: body }, { as }),
        );
      }
      for (const value of [CANARY.protected, CANARY.private]) {
        const documents = [
          `{ settings(appId: "${value}") }`,
          `{ settings "${value}" }`,
          `{ settings(appId: { a: "${value}" }) }`,
        ];
        for (const document of documents)
          recordText(kind, "a faulty document", await service.graphql(document, {}, { as }));
      }
      const cut = `{"__kept": "${CANARY.protected}", "_own": "${CANARY.private}"`;
      recordText(
        kind,
        "a body that is cut off",
        (await service.rest("POST", `${app}/settings`, { as, body: cut })).body,
      );
      const path = `/v3/apps/${service.appId}/actions/quiet/runWithResult`;
      recordText(kind, "a run", (await service.rest("POST", path, { as })).body);
    }
  });

  it("are followed by every subscription", async () => {
    for (const [kind, as] of Object.entries(tokens)) {
      const client = service.socket(as ?? "none");
      const ended = subscriptions(ids).map(async (query) => {
        const frames = client.iterate({ query });
        // The loop ends when the test disposes the client.
        for await (const frame of frames) recordText(kind, query, frame);
      });
      const settled = Promise.allSettled(ended);
      await service.rest("POST", `/v1/apps/${service.appId}/settings`, { body: { turn: kind } });
      // A subscription sends no events from before its start. So the test starts runs until an event arrives.
      await until(async () => {
        await service.rest("POST", `/v3/apps/${service.appId}/actions/quiet/runWithResult`);
        return !SUBSCRIBING_CREDENTIALS.includes(kind) || sentTexts.some((sent) => sent.kind === kind && isFrame(sent));
      });
      // If the service rejects the connection at this moment, `dispose` rejects with the reason. The subscriptions then end with it too.
      await Promise.allSettled([client.dispose()]);
      await client.terminate();
      for (const end of await settled)
        recordText(kind, "the end of a subscription", String((end as { reason?: unknown }).reason));
    }
  });

  it("the protected test value appears nowhere", () => {
    const leaks = sentTexts.filter(({ text }) => holds(text, CANARY.protected));
    expect(leaks.map(({ kind, exit }) => `${kind} at ${exit}`)).to.deep.equal([]);
  });

  it("the private test value appears only for editors, admins, API and task tokens, where settings are read", () => {
    const shown = sentTexts.filter(({ text }) => holds(text, CANARY.private));
    const exitsOf = (list: SentText[]) => [...new Set(list.map(({ kind, exit }) => `${kind} at ${exit}`))];
    const isExpectedCanary = ({ kind, exit }: SentText) =>
      READERS.includes(kind) && (PRIVATE_READ.test(exit) || exit === "setSettings");
    expect(exitsOf(shown.filter((sent) => !isExpectedCanary(sent)))).to.deep.equal([]);
    for (const kind of READERS) expect(exitsOf(shown)).to.include(`${kind} at /v1/apps/${service.appId}/settings`);
    expect(exitsOf(shown)).to.include(`editor at /v1/apps/${service.appId}/versions/${ids.versionId}`);
  });

  it("the public test value appears in env.js for the app's users and editors", () => {
    const exit = `/v1/apps/${service.appId}/env.js`;
    const shown = sentTexts
      .filter((sent) => sent.exit === exit && holds(sent.text, CANARY.public))
      .map(({ kind }) => kind);
    expect(shown).to.have.members(["editor", "admin", "viewer", "live"]);
    expect(sentTexts.filter(isFrame).map(({ kind }) => kind)).to.include.members(SUBSCRIBING_CREDENTIALS);
    expect(sentTexts.length).to.be.greaterThan(8 * 40);
  });
});
