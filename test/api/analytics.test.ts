import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

/** Number of concurrent requests of a flood. */
const BATCH_SIZE = 50;

const event = (n: number, type = "analytics.pageView") => ({ createdAt: 1_700_000_000_000 + n, type, data: { n } });

describe("Analytics events of clients", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
  });
  after(() => service.stop());

  const send = (body: unknown, as: string | null = "live", headers: Record<string, string> = {}) =>
    service.rest("POST", `/v1/apps/${service.appId}/analytics`, { as, body, headers });
  const recorded = () => service.db.query("SELECT type, data::text AS data, user_id FROM log_event ORDER BY id");

  it("are recorded in their order as app.analytics.* log events, which start the log triggers that match", async () => {
    const actions = `/v3/apps/${service.appId}/actions`;
    const created = await service.rest("POST", actions, {
      body: {
        name: "on-sign-up",
        code: "async function execute({ payload }) { return payload.log.data.n; }",
        active: true,
        triggers: [{ trigger: "log", where: { type: "app.analytics.event" } }],
      },
    });
    await service.rest("POST", `/v1/apps/${service.appId}/publish`);
    const { id } = (await service.rest("POST", `${actions}/${created.body.action.id}/publish`)).body.action;
    const answer = await send({ events: [event(1), event(2, "analytics.event"), event(3)] });
    expect([answer.http, answer.body]).to.deep.equal([201, { status: "EVENTS_RECORDED", count: 3 }]);
    const found = await recorded();
    expect(found.map(({ type }: { type: string }) => type)).to.deep.equal([
      "app.analytics.pageView",
      "app.analytics.event",
      "app.analytics.pageView",
    ]);
    expect(found.map(({ data }: { data: string }) => JSON.parse(data).n)).to.deep.equal([1, 2, 3]);
    const [entry] = await until(async () => {
      const { logs } = (await service.rest("POST", `${actions}/logs`, { body: { id } })).body;
      return logs.length > 0 && logs;
    });
    expect(entry.data.result.data).to.equal(2);
  });

  it("can be sent with the cookie when a page closes, only from the same origin", async () => {
    const before = (await recorded()).length;
    const cookie = `auth_token=${service.tokens.live}`;
    expect((await send({ events: [event(1)] }, null, { cookie, origin: service.url })).http).to.equal(201);
    expect((await send({ events: [event(1)] }, null, { cookie, origin: "https://evil.example" })).http).to.equal(403);
    expect(await recorded()).to.have.length(before + 1);
  });

  it("are accepted only from pages and editors", async () => {
    for (const [as, http] of [
      ["viewer", 201],
      ["live", 201],
      ["editor", 201],
      ["api", 403],
      [null, 401],
    ] as const) {
      expect((await send({ events: [event(1)] }, as)).http, String(as)).to.equal(http);
    }
  });

  it("are rejected as a whole if one is not as specified", async () => {
    const before = (await recorded()).length;
    for (const events of [
      undefined,
      {},
      Array.from({ length: 101 }, (_, n) => event(n)),
      [event(1), 1],
      [event(1), event(2, "app.task.completed")],
      [event(1), { ...event(2), createdAt: "now" }],
      [event(1), { ...event(2), data: [] }],
    ]) {
      expect((await send({ events })).body.status).to.equal("REQUEST_INVALID");
    }
    expect(await recorded()).to.have.length(before);
  });

  it("are stored all or none if the database fails, so that a client can send them again", async () => {
    const before = (await recorded()).length;
    const countRuns = async () => (await service.db.query("SELECT count(*)::int AS runs FROM run"))[0].runs;
    const runsBefore = await countRuns();
    // Ends the first and the third statement as a stopping database does. The second request needs only the second statement. If it needed
    // two, the third one would fail. The sequence also counts statements that are rolled back.
    await service.db.query(`
      CREATE SEQUENCE event_statement;
      CREATE FUNCTION stop_some() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF nextval('event_statement') IN (1, 3) THEN RAISE EXCEPTION 'stopping' USING ERRCODE = '57P01'; END IF;
        RETURN NULL; END $$;
      CREATE TRIGGER stop_some BEFORE INSERT ON log_event FOR EACH STATEMENT EXECUTE FUNCTION stop_some()`);
    // One statement stores at most 64 events of several requests. A single request may have more events, and they must not be separated.
    const events = Array.from({ length: 100 }, (_, n) => event(n, "analytics.event"));
    const answers: number[] = [];
    for (;;) {
      const { http, headers } = await send({ events });
      answers.push(http);
      if (http === 201) break;
      expect([http, headers.get("retry-after")]).to.deep.equal([503, "1"]);
      expect(await recorded()).to.have.length(before);
    }
    await service.db.query("DROP FUNCTION stop_some CASCADE");
    expect(answers).to.deep.equal([503, 201]);
    const stored = (await recorded()).slice(before);
    expect(stored.map(({ data }: { data: string }) => JSON.parse(data).n)).to.deep.equal(events.map((_, n) => n));
    expect((await countRuns()) - runsBefore).to.equal(100);
  });

  longTest("have a limit for each client", async () => {
    const made = await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind: "live" } });
    let refused: Answer | undefined;
    // A slow machine would send single requests so slowly that they stay below the limit. So the test sends batches.
    for (let count = 0; count < 5_000 && !refused; count += BATCH_SIZE) {
      const batch = Array.from({ length: BATCH_SIZE }, () => send({ events: [] }, made.body.token));
      refused = (await Promise.all(batch)).find(({ http }) => http !== 201);
    }
    expect(refused?.body.status).to.equal("RATE_LIMIT_EXCEEDED");
    expect(Number(refused?.headers.get("retry-after"))).to.be.greaterThan(0);
    expect((await send({ events: [] }, "viewer")).http).to.equal(201);
  });
});
