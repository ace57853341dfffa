/**
 * Tests each subscription with each way to lose the right to it. Uses two instances: one changes the right, the other serves the
 * subscriber. In the long tests, each instance is a separate process.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { type Client, createClient } from "graphql-ws";
import WebSocket from "ws";
import { type Db, openDatabase } from "../../src/data/database.js";
import { hashToken } from "../../src/operations/access/tokens.js";
import { createDataFolder } from "../harness/fleet.js";
import { type Instance, startInstance } from "../harness/instance.js";
import { type FreshDatabase, freshDatabase } from "../harness/postgres.js";
import { sampleOf } from "../harness/samples.js";
import { createFirstCredentials, type TokenKind } from "../harness/service.js";
import { until } from "../harness/until.js";
import { type CallerKind, type RightLoss, SUBJECTS, type SubscriptionName, subscriptionCases } from "./right-losses.js";

const SCHEMA = new URL("../../../schema/schema.graphql", import.meta.url);
/**
 * Maximum time in milliseconds from the loss of a right to the error or the message `reset` of the subscription. Only
 * test/long/subscription-ends.test.ts sets a limit, because a busy machine may exceed it.
 */
const END_MAX_MS = Number(process.env["ENDS_WITHIN_MS"] ?? Number.POSITIVE_INFINITY);
const CODE = "async function execute() { return 1; }";
const READABLE_RULES = [{ type: ["select"], allow: "loggedIn" }];
/** Access rules by which users of one office can read an additional column. */
const OFFICE_RULES = [
  { type: ["select"], allow: { user: { Office: { equals: "London" } } } },
  { type: ["select"], allow: "loggedIn", exclude: ["hidden"] },
];

describe("a subscription whose caller loses the right to it, over two instances", () => {
  let database: FreshDatabase;
  let folder: string;
  let db: Db;
  let instances: Instance[];
  /** URLs of the instance that changes rights, and of the instance that serves the subscribers. */
  let [near, far] = ["", ""];
  let app: number;
  let otherApp: number;
  let tokens: Record<TokenKind, string>;
  let sequence = 0;
  const durations: number[] = [];

  async function rest(method: string, path: string, body?: unknown, token = tokens.editor) {
    const response = await fetch(near + path, {
      method,
      headers: { "auth-token": token, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each route returns another type
    const answer = (await response.json()) as any;
    expect(response.status, `${method} ${path}: ${JSON.stringify(answer)}`).to.be.lessThan(300);
    return answer;
  }

  before(async () => {
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), "svc-ends-"));
    const first = await createFirstCredentials(database.url, folder);
    app = first.appId;
    tokens = first.tokens;
    db = await openDatabase(database.url, 2);
    const environment = {
      ...{ DATABASE_URL: database.url, SETTINGS_KEY: randomBytes(32).toString("base64"), ROLES: "api" },
      ...{ RATE_LIMIT_MANAGE: "0", RATE_LIMIT_RUN: "0", RATE_LIMIT_PUBLISH: "0" },
    };
    const media = mkdtempSync(join(folder, "media-"));
    const start = () => startInstance({ ...environment, DATA_DIR: createDataFolder(media) });
    instances = await Promise.all([start(), start()]);
    [near, far] = instances.map(({ url }) => url) as [string, string];
    otherApp = (await rest("POST", "/v1/admin/apps", { name: "other" }, tokens.admin)).app.id;
    await rest("POST", `/v1/apps/${app}/publish`);
    await rest("POST", `/v1/apps/${app}/data-sources`, {
      name: "Users",
      isUsers: true,
      hooks: [{ type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } }],
    });
  });
  after(async () => {
    await Promise.all(instances.map((instance) => instance.stop()));
    await db.destroy();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  const subscriptions = async () => {
    // Each check makes the process generate all metrics. Without this delay, the checks would leave no time for other work.
    await delay(30);
    const response = await fetch(`${far}/metrics`);
    return Number(/what="subscriptions"[^\n]* (\d+)/.exec(await response.text())?.[1]);
  };

  async function callerOf(callerKind: CallerKind) {
    if (callerKind === "visitor") {
      const page = await fetch(`${near}/apps/${app}`);
      const token = /svc_live_[\w-]+/.exec((await page.text()) + page.headers.get("set-cookie"))![0];
      return { token, user: 0, entry: null };
    }
    if (callerKind === "editor") {
      sequence += 1;
      const person = { firstName: "E", lastName: "D", email: `e${sequence}@example.org` };
      const { user, token } = await rest("POST", "/v1/admin/users", person, tokens.admin);
      // The session stays valid without the role on the first app, because the person has a role on another one.
      for (const appId of [app, otherApp])
        await rest("POST", `/v1/apps/${appId}/editors`, { userId: user.id }, tokens.admin);
      return { token: token as string, user: user.id as number, entry: null };
    }
    const { token } = await rest("POST", `/v1/apps/${app}/tokens`, {
      kind: callerKind === "user" ? "live" : callerKind,
    });
    if (callerKind !== "user") return { token: token as string, user: 0, entry: null };
    sequence += 1;
    const data = { Email: `u${sequence}@example.org`, Password: "secret", Office: "London" };
    const entry = await rest("POST", `/v1/apps/${app}/data-sources/Users/entries`, { data });
    const where = { Email: data.Email, Password: data.Password };
    await rest("POST", `/v1/apps/${app}/session`, { dataSourceId: "Users", where }, token);
    return { token: token as string, user: 0, entry: entry.id as number };
  }

  /** Creates the object whose events the subscription sends. Returns the object with a function that causes an event. */
  async function createTarget(name: SubscriptionName, rules: object[]) {
    sequence += 1;
    const source = (await rest("POST", `/v1/apps/${app}/data-sources`, { name: `s${sequence}`, accessRules: rules }))
      .dataSource.id;
    const triggers = [{ trigger: "manual" }];
    const made = { name: `a${sequence}`, code: CODE, active: true, triggers };
    const action = (await rest("POST", `/v3/apps/${app}/actions`, made)).action.id;
    const start = async () => (await rest("POST", `/v3/apps/${app}/actions/${action}/run`, {})).runId as number;
    const run = name.startsWith("runConsole") ? await start() : 0;
    let lines = 0;
    const emit: Record<SubscriptionName, () => Promise<unknown>> = {
      actionChanged: () => rest("PUT", `/v3/apps/${app}/actions/${action}`, { description: `d${++lines}` }),
      actionLogAdded: async () => rest("POST", `/v3/apps/${app}/runs/${await start()}/cancel`),
      async clientTriggers() {
        const where = { type: "analytics.pageView" };
        const shown = {
          ...made,
          name: `c${++sequence}`,
          environment: "client",
          triggers: [{ trigger: "analytics", where }],
        };
        const client = await rest("POST", `/v3/apps/${app}/actions`, shown);
        await rest("POST", `/v1/apps/${app}/publish`);
        await rest("POST", `/v3/apps/${app}/actions/${client.action.id}/publish`);
      },
      dataSourceChanged: () =>
        rest("POST", `/v1/apps/${app}/data-sources/${source}/entries`, { data: { n: 1, Office: "London" } }),
      notificationAdded: () =>
        rest("POST", `/v1/apps/${app}/notifications`, { status: "published", data: { title: "t" } }),
      runConsoleAdded: () => print(),
      runConsoleLinesAdded: () => print(),
    };
    async function print() {
      await db.query("INSERT INTO console_line (run_id, seq, level, at, text) VALUES ($1, $2, 'log', now(), 'x')", [
        run,
        lines++,
      ]);
    }
    return { source, action, run, emit: emit[name] };
  }

  type Target = Awaited<ReturnType<typeof createTarget>>;

  function follow(name: SubscriptionName, { source, run }: Target, token: string) {
    const client: Client = createClient({
      url: `${far.replace("http", "ws")}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: { authToken: token },
      retryAttempts: 0,
    });
    const received: { events: Record<string, unknown>[]; status: string | null; at: number; eventsAtError: number } = {
      events: [],
      status: null,
      at: 0,
      eventsAtError: 0,
    };
    const needs = { actionChanged: "", actionLogAdded: "", clientTriggers: "", notificationAdded: "" } as Record<
      string,
      string
    >;
    const declared = name === "dataSourceChanged" ? ", $source: ID!" : name in needs ? "" : ", $run: Int!";
    const query = `subscription ($app: Int!${declared}) { ${SUBJECTS[name].query} }`;
    client.subscribe<Record<string, Record<string, unknown>>>(
      { query, variables: { app, source: String(source), run } },
      {
        next: ({ data }) => {
          received.events.push(data![name]!);
          received.at = Date.now();
        },
        error(cause) {
          const [error] = Array.isArray(cause) ? cause : [];
          received.status ??= String(error?.extensions?.status ?? cause);
          received.eventsAtError = received.events.length;
          received.at = Date.now();
        },
        complete: () => (received.status ??= "completed"),
      },
    );
    return { received, client };
  }

  /** Changes a credential of any kind in the database: revokes it, or lets it expire. */
  const change = async (set: string, token: string) => {
    await db.query(`UPDATE credential SET ${set} WHERE hash = $1`, [hashToken(token)]);
    await db.query("SELECT pg_notify('svc_credential', '')");
  };

  /** Removes the right of the caller. @returns the time at which the right is lost */
  async function removeRight(
    rightLoss: RightLoss,
    { token, user, entry }: Awaited<ReturnType<typeof callerOf>>,
    target: Target,
  ): Promise<number> {
    const source = `/v1/apps/${app}/data-sources/${target.source}`;
    switch (rightLoss) {
      case "token revoked":
        await change("revoked_at = now()", token);
        break;
      case "token expired": {
        const ends = Date.now() + 700;
        await change(`expires_at = to_timestamp(${ends / 1000})`, token);
        return ends;
      }
      case "role changed":
        if (entry !== null)
          await rest("PUT", `/v1/apps/${app}/data-sources/Users/entries/${entry}`, { data: { Office: "Paris" } });
        else if (user !== 0) await rest("DELETE", `/v1/apps/${app}/editors`, { userId: user });
        break;
      case "rule removed":
        await rest("PUT", source, { accessRules: [] });
        break;
      case "rule changed":
        await rest("PUT", source, { accessRules: [{ type: ["select"], allow: "loggedIn", exclude: ["hidden"] }] });
        break;
      case "signed out":
        if (entry !== null) await rest("DELETE", `/v1/apps/${app}/session`, undefined, token);
        break;
      case "target deleted":
        if (target.run === 0) await rest("DELETE", source);
        else await db.query("DELETE FROM run WHERE id = $1", [target.run]);
        break;
      case "app unpublished":
        await rest("POST", `/v1/apps/${app}/unpublish`);
    }
    return Date.now();
  }

  it("is tested for every subscription of the schema", () => {
    const schema = buildSchema(readFileSync(SCHEMA, "utf8"), { assumeValidSDL: true });
    expect(Object.keys(schema.getSubscriptionType()!.getFields()).sort()).to.deep.equal(Object.keys(SUBJECTS).sort());
  });

  // The service handles revoked and expired credentials in the same way, so `npm test` tests only some of these combinations.
  const endsCredential = ({ rightLoss }: { rightLoss: RightLoss }) =>
    rightLoss === "token revoked" || rightLoss === "token expired";
  const ending = subscriptionCases.filter(({ outcome }) => outcome !== "goes on");
  const others = ending.filter((cell) => !endsCredential(cell));
  const ended = [...sampleOf(ending.filter(endsCredential), 0, 9), ...sampleOf(others, 1, 3)];
  const unchanged = subscriptionCases.filter(({ outcome }) => outcome === "goes on");
  for (const { name, callerKind, rightLoss, outcome } of [...ended, ...sampleOf(unchanged, 0, 17)]) {
    it(`${name} of ${callerKind}, ${rightLoss}: ${outcome}`, async () => {
      await rest("POST", `/v1/apps/${app}/publish`);
      const isByOffice = callerKind === "user" && rightLoss === "role changed";
      const target = await createTarget(name, isByOffice ? OFFICE_RULES : READABLE_RULES);
      const caller = await callerOf(callerKind);
      const { received, client } = follow(name, target, caller.token);
      // A second caller keeps its rights, and receives the events that the first caller must not receive.
      const control = follow(
        name,
        target,
        callerKind === "live" || callerKind === "visitor" ? tokens.live : tokens.editor,
      );
      try {
        await until(subscriptions);
        await until(async () => (await subscriptions()) === 2);
        // Some subscriptions send a first message without an event, which must not count.
        const first = received.events.length;
        await target.emit();
        await until(() => received.events.length > first && control.received.events.length > 0);
        await delay(50);
        const before = received.events.length;
        const from = await removeRight(rightLoss, caller, target);
        if (outcome === "goes on") {
          await target.emit();
          await until(() => received.events.length > before);
          expect(received.status).to.equal(null);
          return;
        }
        if (outcome === "reset") {
          await until(() => received.events.slice(before).some(({ reset }) => reset));
          expect(received.status).to.equal(null);
        } else {
          await until(() => received.status !== null);
          expect(received.status).to.equal(outcome);
        }
        durations.push(received.at - from);
        if (outcome === "reset") return;
        await until(async () => (await subscriptions()) === (rightLoss === "target deleted" ? 0 : 1));
        if (rightLoss !== "target deleted") {
          const controlEvents = control.received.events.length;
          await target.emit();
          await until(() => control.received.events.length > controlEvents);
        }
        expect(received.events.length).to.equal(received.eventsAtError);
      } finally {
        await client.dispose();
        await control.client.dispose();
        await until(async () => (await subscriptions()) === 0);
      }
    });
  }

  it("is measured", () => {
    expect(durations).to.not.deep.equal([]);
    expect(Math.max(...durations)).to.be.lessThan(END_MAX_MS);
  });
});
