/**
 * Checks that members of one app cannot use another app's resources by their numeric IDs. The test calls all GraphQL operations that take
 * such IDs.
 */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { buildSchema } from "graphql";
import { Client } from "pg";
import { rows } from "../../src/data/database.js";
import { addLogEntry } from "../harness/log-entries.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { type CallByNumber, callsByNumber } from "./calls-by-number.js";
import { addNumberedApp } from "./numbered-app.js";

/** ID of the caller's app and all its resources. */
const OWN_ID = 4001;
/** ID of another app and all its resources. */
const FOREIGN_ID = 5001;
/** ID that no resource has. */
const UNUSED_ID = 6001;
const MARK = "kept-by-the-other";

const CALLS = callsByNumber(buildSchema(readFileSync("schema/schema.graphql", "utf8")));
const callsOf = (operation: CallByNumber["operation"]) => CALLS.filter((call) => call.operation === operation);

/** Query of all tables with the columns `id` and `app_id`. Leaves out received git webhooks, because the API does not return their IDs. */
const TABLES = `
  SELECT relname AS name FROM pg_class
   WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
     AND relname <> 'git_webhook'
     AND 2 = (SELECT count(*) FROM pg_attribute WHERE attrelid = pg_class.oid AND attname IN ('id', 'app_id'))`;

describe("resources of another app, requested by their IDs", () => {
  let service: TestService;
  let admin: string;

  /** Returns the response to the call, with 0 in place of all numbers and UUIDs. Fails if it contains data of the other app. */
  async function answerTo(call: CallByNumber, numbers: readonly number[]): Promise<string> {
    const text = JSON.stringify(await service.graphql(call.document(OWN_ID, numbers), {}, { as: admin }));
    expect(text, call.name).to.not.include(MARK);
    return text.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\d.]+/g, "0");
  }

  /**
   * Makes the call with another app's ID and with an unused ID, for each number in the call. Returns the differences between the responses.
   */
  async function findDifferences(call: CallByNumber): Promise<string[]> {
    const found: string[] = [];
    for (let position = 0; position < call.numbers; position += 1) {
      const numbers = (odd: number) =>
        Array.from({ length: call.numbers }, (_, index) => (index === position ? odd : OWN_ID));
      const foreign = await answerTo(call, numbers(FOREIGN_ID));
      const unusedAnswer = await answerTo(call, numbers(UNUSED_ID));
      if (foreign !== unusedAnswer)
        found.push(`${call.name}, number ${position + 1}: ${foreign} beside ${unusedAnswer}`);
    }
    return found;
  }

  async function foreignRows(): Promise<string[]> {
    const tables = await rows<{ name: string }>(service.db, TABLES, []);
    const all = tables.map(({ name }) => `SELECT '${name} ' || t::text AS line FROM ${name} AS t WHERE app_id = $1`);
    const marked = ["action_version", "console_line", "payload_preset", "app", "person"].map(
      (name) => `SELECT '${name} ' || t::text FROM ${name} AS t WHERE t::text LIKE '%${MARK}%'`,
    );
    const found = await rows<{ line: string }>(service.db, [...all, ...marked].join(" UNION ALL "), [FOREIGN_ID]);
    return found.map(({ line }) => line).sort();
  }

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    admin = await addNumberedApp(service, OWN_ID, "kept-by-its-own");
    await addNumberedApp(service, FOREIGN_ID, MARK);
  });
  after(() => service.stop());

  it("exist for every kind that has IDs", async () => {
    const empty: string[] = [];
    for (const { name } of await rows<{ name: string }>(service.db, TABLES, [])) {
      const found = await rows(service.db, `SELECT FROM ${name} WHERE app_id = $1 AND id = $1`, [FOREIGN_ID]);
      if (found.length === 0) empty.push(name);
    }
    expect(empty).to.deep.equal([]);
  });

  it("exist: the people of their app get another response than for an unknown ID", async () => {
    const same: string[] = [];
    for (const call of callsOf("query")) {
      const all = (number: number) => Array<number>(call.numbers).fill(number);
      if ((await answerTo(call, all(OWN_ID))) === (await answerTo(call, all(UNUSED_ID)))) same.push(call.name);
    }
    expect(same).to.deep.equal([]);
  });

  it("are not found by queries", async () => {
    const found: string[] = [];
    for (const call of callsOf("query")) found.push(...(await findDifferences(call)));
    expect(found).to.deep.equal([]);
  });

  it("are not found by subscriptions, also when they change", async () => {
    const client = service.socket(admin);
    const db = new Client({ connectionString: service.databaseUrl });
    await db.connect();
    const received = new Map<string, unknown[]>();
    const follow = (name: string, query: string) => {
      const messages: unknown[] = [];
      received.set(name, messages);
      const add = (message: unknown) => void messages.push(message);
      client.subscribe({ query }, { next: add, error: add, complete: () => {} });
    };
    for (const { name, numbers, document } of callsOf("subscription")) {
      for (const number of [FOREIGN_ID, UNUSED_ID]) {
        follow(`${name} of ${number}`, document(OWN_ID, Array<number>(numbers).fill(number)));
      }
    }
    const controlName = "all of its own";
    follow(controlName, `subscription { actionLogAdded(appId: ${OWN_ID}) { id } }`);
    await until(async () => {
      for (const app of [FOREIGN_ID, OWN_ID]) await addLogEntry(db, app, { mark: MARK }, app);
      return received.get(controlName)!.length > 0;
    });
    // Each call has two subscriptions, for FOREIGN_ID and for UNUSED_ID. The test waits until both have the same number of messages.
    const count = (name: string, id: number) => received.get(`${name} of ${id}`)!.length;
    await until(() =>
      callsOf("subscription").every(({ name }) => count(name, FOREIGN_ID) === count(name, UNUSED_ID)),
    ).catch(() => undefined);
    await client.dispose();
    await db.end();
    for (const { name } of callsOf("subscription")) {
      expect(received.get(`${name} of ${FOREIGN_ID}`), name).to.deep.equal(received.get(`${name} of ${UNUSED_ID}`));
    }
    expect(received.get(controlName)).to.have.nested.property("0.data.actionLogAdded.id");
  });

  it("are not changed by any mutation", async () => {
    const before = await foreignRows();
    const found: string[] = [];
    for (const call of callsOf("mutation")) found.push(...(await findDifferences(call)));
    expect(found).to.deep.equal([]);
    expect(await foreignRows()).to.deep.equal(before);
  });
});
