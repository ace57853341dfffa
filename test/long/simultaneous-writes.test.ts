/**
 * Sends many changes of one app at once, with and without a body. Only the statuses in EXPECTED_STATUSES may have a 5xx code. No
 * transaction may deadlock. WRITES sets the number of changes (6,000 by default), SEED their order.
 */
import { expect } from "chai";
import fc from "fast-check";
import { rows } from "../../src/data/database.js";
import { BODY_SAMPLES, fillIds, fillPath, type Ids, prepareSamples } from "../api/body-samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const WRITE_COUNT = Number(process.env["WRITES"] ?? 6_000);
const SEED = Number(process.env["SEED"] ?? 1);
const CONCURRENT_WRITES = 16;
/** Changes with a body that the test skips. Most of them wait for a run or for another service. */
const SKIPPED_ROUTES = /runWithResult|\/ai\/|secret-bindings\/test|sign-in|\/auth\/reset|communicate/;

/** 5xx statuses that are no fault: OVERLOADED asks callers to wait, and the contract (section 3) gives RESTORE_FAILED the code 500. */
const EXPECTED_STATUSES = ["OVERLOADED", "RESTORE_FAILED"];

/** Changes without a body that the test skips, because they end something that later requests need, such as the app or the session. */
const TEST_ENDING_ROUTES = /\/auth\/|DELETE \/v1\/(admin\/)?apps\/\{appId\}$|editors|unpublish|oauth|hooks/;

/** Table in which the test finds the IDs for each parameter of the samples. */
const TABLES_BY_PARAMETER: Record<string, string> = {
  action: "action",
  actionId: "action",
  nameOrId: "action",
  client: "action",
  runId: "run",
  ds: "data_source",
  users: "data_source",
  entryId: "data_source_entry",
  folder: "media_folder",
  file: "media_file",
  notificationId: "notification",
  alertId: "alert_rule",
  versionId: "app_version",
};

interface OpenApiDocument {
  paths: Record<string, Record<string, { requestBody?: unknown }>>;
}

describe("concurrent changes of one app", function () {
  this.timeout(0);
  let service: TestService;
  let ids: Ids;
  let routes: string[];

  before(async () => {
    service = await startTestService({ ROLES: "api,runner,scheduler" });
    ids = await prepareSamples(service);
    const { paths } = (await service.rest("GET", "/v1/openapi.json")).body as OpenApiDocument;
    const withoutBody = Object.entries(paths)
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { requestBody }]) => ({ path, method, requestBody })),
      )
      .filter(({ method, requestBody }) => method !== "get" && !requestBody)
      .map(({ path, method }) => `${method.toUpperCase()} ${path}`)
      .filter((route) => !TEST_ENDING_ROUTES.test(route));
    routes = [...Object.keys(BODY_SAMPLES).filter((route) => !SKIPPED_ROUTES.test(route)), ...withoutBody];
  });
  after(() => service.stop());

  it(`cause no unexpected 5xx in ${WRITE_COUNT} requests, and no deadlock`, async () => {
    const numbers = fc.sample(fc.nat(), { seed: SEED, numRuns: WRITE_COUNT * 25 });
    let drawn = 0;
    const draw = () => numbers[drawn++ % numbers.length]!;
    const faults: string[] = [];
    const answers: Record<string, number> = {};
    let sent = 0;
    const unique = (body: unknown, number: number): unknown => {
      if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
      const name = "name" in body && { name: `n${number % 40}` };
      const email = "email" in body && { email: `p${number}@example.com` };
      const where = { path: `n${number % 40}`, auth: { type: "secret" } };
      const triggers = "triggers" in body && number % 2 === 0 && { triggers: [{ trigger: "http", where }] };
      return { ...body, ...name, ...email, ...triggers };
    };
    // IDs of existing rows, the newest first. Read again after every fifty requests, because requests delete and create rows.
    let present: Record<string, number[]> = {};
    const drawIds = (): Ids =>
      Object.fromEntries(
        Object.entries(ids).map(([name, id]) => {
          const found = present[TABLES_BY_PARAMETER[name] ?? ""] ?? [];
          return [name, found.length > 0 ? found[draw() % Math.min(found.length, 4)]! : id];
        }),
      );
    const readPresentIds = async () => {
      const entries = Object.values(TABLES_BY_PARAMETER).map(async (table) => {
        const found = await rows<{ id: number }>(
          service.db,
          `SELECT id FROM ${table} WHERE app_id = 1 ORDER BY id DESC LIMIT 8`,
        );
        return [table, found.map(({ id }) => id)] as const;
      });
      present = Object.fromEntries(await Promise.all(entries));
    };
    const write = async (number: number) => {
      if (number % 50 === 0) await readPresentIds();
      const of = drawIds();
      const route = routes[draw() % routes.length]!;
      const sample = BODY_SAMPLES[route];
      const body = sample && unique(fillIds(sample.body, of), number);
      const [method] = route.split(" ");
      const answer = await service.rest(method!, fillPath(route, of), {
        as: "admin",
        ...(body !== undefined && { body }),
      });
      const key = `${answer.http}`;
      answers[key] = (answers[key] ?? 0) + 1;
      if (answer.http >= 500 && !EXPECTED_STATUSES.includes(answer.body.status))
        faults.push(`${route}: ${JSON.stringify(answer.body)}`);
    };
    const writer = async () => {
      for (; sent < WRITE_COUNT; ) await write(sent++);
    };
    await Promise.all(Array.from({ length: CONCURRENT_WRITES }, writer));
    process.stdout.write(`      ${JSON.stringify(answers)}\n`);
    expect(faults).to.deep.equal([]);
    const sql = "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()";
    const [{ deadlocks }] = (await rows<{ deadlocks: number }>(service.db, sql)) as [{ deadlocks: number }];
    expect(deadlocks).to.equal(0);
  });
});
