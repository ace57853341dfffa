import { expect } from "chai";
import { startTestService, type TestService } from "../harness/service.js";
import { API_CLIENTS, type ApiClient, createRestApiClient, type Outcome } from "./api-clients.js";
import { count, make, newName, publishApp, validAction } from "./support.js";

const WRITERS = 12;
const sorted = (outcomes: Outcome[]) => outcomes.map(({ status }) => status).sort();
const times = (status: string, n: number) => Array.from({ length: n }, () => status);

describe("concurrent changes of actions", () => {
  let service: TestService;
  let apiClient: ApiClient;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    apiClient = createRestApiClient(service);
    await publishApp(service);
  });
  after(() => service.stop());

  it("create only one action of a name; all others get NAME_ALREADY_EXISTS", async () => {
    const data = validAction();
    const outcomes = await Promise.all(Array.from({ length: WRITERS }, () => apiClient.create(data)));
    expect(sorted(outcomes)).to.deep.equal([...times("NAME_ALREADY_EXISTS", WRITERS - 1), "OK"]);
    expect(await count(service, "action", "name = $1", [data["name"]])).to.equal(1);
  });

  it("rename only one action to a name; all others get NAME_ALREADY_EXISTS", async () => {
    const actions = await Promise.all(Array.from({ length: WRITERS }, () => make(apiClient)));
    const name = newName("wanted");
    const outcomes = await Promise.all(actions.map(({ id }) => apiClient.update(id, { name })));
    expect(sorted(outcomes)).to.deep.equal([...times("NAME_ALREADY_EXISTS", WRITERS - 1), "OK"]);
  });

  it("swap names; a change that conflicts gets NAME_ALREADY_EXISTS", async () => {
    const [action, otherAction] = [await make(apiClient), await make(apiClient)];
    const rivalRunner = service.db.createQueryRunner();
    await rivalRunner.startTransaction();
    await rivalRunner.query("UPDATE action SET name = $2 WHERE id = $1", [otherAction.id, newName("left")]);
    const [{ pid }] = await rivalRunner.query("SELECT pg_backend_pid() AS pid");
    // With this long timeout, the service's transaction detects the deadlock first, after its own shorter deadlock_timeout.
    await rivalRunner.query("SET LOCAL deadlock_timeout = '1min'");
    const refused = apiClient.update(action.id, { name: otherAction.name });
    // Locks the other row as soon as the service waits for this transaction. One statement does both, so that the deadlock exists before the
    // service checks for deadlocks.
    await rivalRunner.query(`DO $$ BEGIN
      WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE ${pid} = ANY (pg_blocking_pids(pid))) LOOP
        PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
      END LOOP;
      PERFORM 1 FROM action WHERE id = ${action.id} FOR UPDATE;
    END $$`);
    expect((await refused).status).to.equal("NAME_ALREADY_EXISTS");
    await rivalRunner.rollbackTransaction();
    await rivalRunner.release();
    expect((await apiClient.get(action.id)).value).to.deep.equal(action);
  });

  it("import documents in opposite orders: one creates all actions, the other updates them or is rejected", async () => {
    const actions = Array.from({ length: 20 }, () => validAction());
    const documents = [actions, actions.toReversed()].map((order) => ({ format: "svc-app-actions/1", actions: order }));
    const outcomes = await Promise.all(documents.map((document) => apiClient.import(document)));
    for (const { status } of outcomes) expect(status).to.be.oneOf(["OK", "NAME_ALREADY_EXISTS"]);
    expect(sorted(outcomes)).to.include("OK");
    expect(await count(service, "action", "name = ANY ($1)", [actions.map(({ name }) => name)])).to.equal(20);
  });

  it("publish into one live version", async () => {
    const { id } = await make(apiClient);
    const outcomes = await Promise.all(Array.from({ length: WRITERS }, () => apiClient.publish(id)));
    expect(sorted(outcomes)).to.deep.equal(times("OK", WRITERS));
    expect(new Set(outcomes.map(({ value }) => value.action.id)).size).to.equal(1);
  });

  it("update different fields of one action, and none is lost", async () => {
    const { id } = await make(apiClient);
    const fields = { description: "told", active: true, environment: "any", timezone: "Europe/Paris" };
    await Promise.all(Object.entries(fields).map(([field, value]) => apiClient.update(id, { [field]: value })));
    expect((await apiClient.get(id)).value).to.deep.include(fields);
  });

  it("remove and publish an action: the action is gone, with its live version if it had one", async () => {
    const { id } = await make(apiClient);
    const [published] = await Promise.all([apiClient.publish(id), apiClient.remove(id)]);
    expect(published!.status).to.be.oneOf(["OK", "ACTION_NOT_FOUND"]);
    expect(await count(service, "action", "id = $1 OR master_id = $1", [id])).to.equal(0);
  });

  for (const [name, createApiClient] of API_CLIENTS) {
    const callWithKey = (key: string, as = "editor") => ({ as, headers: { "idempotency-key": key } });

    it(`create with one Idempotency-Key over ${name}: one action, and the first response for all`, async () => {
      const data = validAction();
      const call = callWithKey(newName("key"));
      const outcomes = await Promise.all(
        Array.from({ length: WRITERS }, () => createApiClient(service).create(data, call)),
      );
      outcomes.push(await createApiClient(service).create(data, call));
      expect(sorted(outcomes)).to.deep.equal(times("OK", WRITERS + 1));
      for (const { value } of outcomes) expect(value).to.deep.equal(outcomes[0]!.value);
      expect(await count(service, "action", "name = $1", [data["name"]])).to.equal(1);
      expect(await count(service, "action_version", "action_id = $1", [outcomes[0]!.value.id])).to.equal(1);
    });

    it(`run with one Idempotency-Key over ${name}: one run with one ID for all; the key of another caller starts another run`, async () => {
      const { id } = await make(apiClient, { active: true, triggers: [{ trigger: "manual" }] });
      const key = newName("key");
      const outcomes = await Promise.all(
        Array.from({ length: WRITERS }, () => createApiClient(service).run(id, {}, callWithKey(key))),
      );
      expect(sorted(outcomes)).to.deep.equal(times("OK", WRITERS));
      expect(new Set(outcomes.map(({ value }) => value.runId)).size).to.equal(1);
      await createApiClient(service).run(id, {}, callWithKey(key, "admin"));
      expect(await count(service, "run", "action_id = $1", [id])).to.equal(2);
    });

    it(`an Idempotency-Key over ${name} belongs to the credential that sent it`, async () => {
      const key = newName("key");
      const data = validAction();
      expect((await createApiClient(service).create(data, callWithKey(key))).status).to.equal("OK");
      expect((await createApiClient(service).create(data, callWithKey(key, "admin"))).status).to.equal(
        "NAME_ALREADY_EXISTS",
      );
    });

    it(`an Idempotency-Key over ${name} applies to one request, and not to a failed one`, async () => {
      const call = callWithKey(newName("key"));
      const existing = await make(apiClient);
      const data = validAction({ name: existing.name });
      expect((await createApiClient(service).create(data, call)).status).to.equal("NAME_ALREADY_EXISTS");
      expect((await createApiClient(service).create(validAction(), call)).status).to.equal("OK");
      expect((await createApiClient(service).create(validAction(), call)).status).to.equal("REQUEST_INVALID");
    });

    it(`an Idempotency-Key over ${name} is forgotten after 24 hours`, async () => {
      const call = callWithKey(newName("key"));
      const data = validAction();
      await createApiClient(service).create(data, call);
      const age = (hours: number, minutes: number) =>
        service.db.query("UPDATE idempotency SET created_at = now() - make_interval(hours => $1, mins => $2)", [
          hours,
          minutes,
        ]);
      await age(23, 59);
      expect((await createApiClient(service).create(data, call)).status).to.equal("OK");
      await age(24, 1);
      expect((await createApiClient(service).create(data, call)).status).to.equal("NAME_ALREADY_EXISTS");
      await createApiClient(service).create(validAction(), callWithKey(newName("key")));
      expect(await count(service, "idempotency", "created_at < now() - interval '24 hours'", [])).to.equal(0);
    });
  }
});
