/** Tests subscriptions to a data source over the websocket: their events, their readers, and that a lost connection loses no change. */
import { expect } from "chai";
import type { Client } from "graphql-ws";
import { longTest, sampleOf } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

interface SubscriptionMessage {
  reset: boolean;
  position: string;
  inserted: { id: number; data: Record<string, unknown> }[];
  updated: { id: number; data: Record<string, unknown> }[];
  deleted: { id: number; data: Record<string, unknown> }[];
}

const TEXT = `subscription ($app: Int!, $ds: ID!, $where: JSON, $since: String) {
  dataSourceChanged(appId: $app, dataSourceId: $ds, where: $where, since: $since) {
    reset position inserted { id data } updated { id data } deleted { id data }
  }
}`;

describe("a subscription to a data source", () => {
  let service: TestService;
  let base: string;
  let made = 0;
  const clients: Client[] = [];

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.dispose();
  });
  after(() => service.stop());

  const make = async (more: object = {}): Promise<string> => {
    made += 1;
    const { body } = await service.rest("POST", base, { body: { name: `followed ${made}`, ...more } });
    return `${base}/${body.dataSource.id}`;
  };

  function follow(path: string, variables: object = {}, as = "editor") {
    const client = service.socket(as);
    clients.push(client);
    const received = client.iterate<{ dataSourceChanged: SubscriptionMessage }>({
      query: TEXT,
      variables: { app: service.appId, ds: path.split("/").at(-1), ...variables },
    });
    return async (): Promise<SubscriptionMessage> => {
      const { value } = await received.next();
      if (value?.errors) throw new Error(String(value.errors[0]?.extensions?.["status"]));
      return value!.data!.dataSourceChanged;
    };
  }

  const insert = async (path: string, data: object) =>
    (await service.rest("POST", `${path}/entries`, { body: { data } })).body;
  const nothing = { reset: false, inserted: [], updated: [], deleted: [] };
  const withoutPosition = ({ position: _, ...rest }: SubscriptionMessage) => rest;

  it("reports each insertion, update and removal when it is committed", async () => {
    const path = await make();
    const next = follow(path);
    expect(withoutPosition(await next())).to.deep.equal(nothing);
    const { id } = await insert(path, { b: 1, a: 2 });
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, inserted: [{ id, data: { b: 1, a: 2 } }] });
    await service.rest("PUT", `${path}/entries/${id}`, { body: { data: { a: 3 } } });
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, updated: [{ id, data: { b: 1, a: 3 } }] });
    await service.rest("DELETE", `${path}/entries/${id}`);
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, deleted: [{ id, data: { b: 1, a: 3 } }] });
  });

  it("with a where reports entries that enter and leave its result, and nothing else", async () => {
    const path = await make({ entries: [{ n: 1 }] });
    const next = follow(path, { where: { n: { $gt: 5 } } });
    await next();
    const low = await insert(path, { n: 2 });
    const high = await insert(path, { n: 7 });
    const rest = [await next()];
    while (rest.at(-1)!.inserted.length === 0) rest.push(await next());
    expect(rest.flatMap(({ inserted }) => inserted)).to.deep.equal([{ id: high.id, data: { n: 7 } }]);
    await service.rest("PUT", `${path}/entries/${low.id}`, { body: { data: { n: 8 } } });
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, inserted: [{ id: low.id, data: { n: 8 } }] });
    await service.rest("PUT", `${path}/entries/${high.id}`, { body: { data: { n: 0 } } });
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, deleted: [{ id: high.id, data: { n: 7 } }] });
  });

  it("continues from a position: changes in between are reported once", async () => {
    const path = await make();
    const first = follow(path);
    const { position } = await first();
    await clients.pop()!.dispose();
    const ids: number[] = [];
    for (let at = 0; at < 25; at += 1) ids.push((await insert(path, { at })).id);
    await service.rest("DELETE", `${path}/entries/${ids[0]}`);
    const next = follow(path, { since: position });
    const seen = new Map<number, number>();
    let last = position;
    while (seen.size < 24) {
      const rest = await next();
      expect(Number(rest.position)).to.be.greaterThan(Number(last));
      last = rest.position;
      expect(rest.reset).to.equal(false);
      for (const { id } of rest.inserted) seen.set(id, (seen.get(id) ?? 0) + 1);
      for (const { id } of rest.deleted) expect(id).to.equal(ids[0]);
    }
    expect([...seen.keys()].sort()).to.deep.equal(ids.slice(1).sort());
    expect([...seen.values()].every((count) => count === 1)).to.equal(true);
  });

  it("starts with a reset at a position of a removed data source that had the same name", async () => {
    const name = "followed again";
    const create = (entries: object[]) => service.rest("POST", base, { body: { name, entries } });
    await create([]);
    const path = `${base}/${encodeURIComponent(name)}`;
    await insert(path, { n: 1 });
    const { position } = await follow(path, { ds: name })();
    await service.rest("DELETE", path);
    await create([{ n: 2 }]);
    expect((await follow(path, { ds: name, since: position })()).reset).to.equal(true);
    await insert(path, { n: 3 });
    const rest = await follow(path, { ds: name, since: position })();
    expect(rest.reset).to.equal(true);
    const next = follow(path, { ds: name, since: rest.position });
    await insert(path, { n: 4 });
    expect((await next()).inserted.map(({ data }) => data)).to.deep.equal([{ n: 4 }]);
  });

  longTest("starts even if its first attempt fails", async () => {
    const path = await make();
    // The first read of the counts fails. A sequence counts the reads, because a rollback does not reset it.
    await service.db.query(`
      CREATE SEQUENCE tally_reads;
      CREATE FUNCTION check_tally_read() RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
          IF nextval('tally_reads') = 1 THEN RAISE 'the first read fails'; END IF;
          RETURN true;
        END $$;
      ALTER TABLE data_source_tally RENAME TO data_source_tally_away;
      CREATE VIEW data_source_tally AS SELECT * FROM data_source_tally_away WHERE check_tally_read();
      INSERT INTO data_source_tally_away (app_id, data_source_id) VALUES (${service.appId}, '${path.split("/").at(-1)}')
        ON CONFLICT DO NOTHING`);
    try {
      const next = follow(path);
      expect(withoutPosition(await next())).to.deep.equal(nothing);
    } finally {
      await service.db.query(`
        DROP VIEW data_source_tally;
        ALTER TABLE data_source_tally_away RENAME TO data_source_tally;
        DROP FUNCTION check_tally_read;
        DROP SEQUENCE tally_reads`);
    }
    const next = follow(path);
    await next();
    const { id } = await insert(path, { n: 1 });
    expect((await next()).inserted.map((entry) => entry.id)).to.deep.equal([id]);
  });

  longTest("from an expired position starts with a reset", async () => {
    const path = await make();
    const { position } = await follow(path)();
    await insert(path, { n: 1 });
    const id = path.split("/").at(-1);
    await service.db.query(
      "UPDATE data_source_tally SET forgotten = (SELECT max(id) FROM data_source_change) WHERE data_source_id = $1",
      [id],
    );
    await service.db.query("DELETE FROM data_source_change WHERE data_source_id = $1", [id]);
    const rest = await follow(path, { since: position })();
    expect(rest.reset).to.equal(true);
    const again = follow(path, { since: rest.position });
    const entry = await insert(path, { n: 2 });
    expect((await again()).inserted.map((inserted) => inserted.id)).to.deep.equal([entry.id]);
  });

  longTest("reports a bulk change as a reset if more than a thousand of its entries change", async () => {
    const path = await make();
    const next = follow(path);
    await next();
    const some = follow(path, { where: { n: { $lt: 2 } } });
    await some();
    const entries = Array.from({ length: 1_001 }, (_, n) => ({ n }));
    await service.rest("POST", `${path}/import`, { body: entries });
    expect((await next()).reset).to.equal(true);
    expect((await some()).inserted.map(({ data }) => data)).to.deep.equal([{ n: 0 }, { n: 1 }]);
  });

  const OWN_ENTRY = { n: -1, Owner: "me" };
  const MANY_ENTRIES = Array.from({ length: 1_500 }, (_, n) => ({ n, Owner: "other" }));
  /** Changes of many entries at once. `ids` has the IDs of the data source's entries. */
  const BULK_CHANGES: Record<string, (path: string, ids: number[]) => Promise<void>> = {
    "an import that adds": async (path) => {
      await service.rest("POST", `${path}/import?append=true`, { body: MANY_ENTRIES });
    },
    "an import that replaces entries of others": async (path) => {
      await service.rest("POST", `${path}/import`, { body: [...MANY_ENTRIES, OWN_ENTRY] });
    },
    "a removal by where": async (path) => {
      await service.rest("POST", `${path}/query`, { body: { type: "delete", where: { Owner: "other" } } });
    },
    "a commit that updates": async (path, ids) => {
      const entries = ids.map((id) => ({ id, data: { Owner: "other", n: 5_000 } }));
      await service.rest("POST", `${path}/commit`, { body: { entries } });
    },
    "a commit that removes what it does not name": async (path) => {
      await service.rest("POST", `${path}/commit`, {
        body: { append: false, entries: [{ data: { Owner: "other" } }] },
      });
    },
    "a restore": async (path) => {
      const { versions } = (await service.rest("GET", `${path}/versions`)).body;
      await service.rest("POST", `${path}/versions/${versions[0].id}/restore`);
    },
  };

  for (const [name, change] of sampleOf(Object.entries(BULK_CHANGES), 1, 3)) {
    it(`hides ${name} from a page whose entries it leaves, and shows others each entry that they may read`, async () => {
      const rules = [{ type: ["select"], allow: "all", require: [{ Owner: { equals: "me" } }] }];
      const path = await make({ accessRules: rules });
      await service.rest("POST", `${path}/import`, { body: MANY_ENTRIES });
      // The import creates a version that the restore below uses.
      await service.rest("POST", `${path}/import`, { body: MANY_ENTRIES });
      const all = { type: "select", limit: 10_000 };
      const { entries } = (await service.rest("POST", `${path}/query`, { body: all })).body;
      const next = follow(path, { where: { Owner: "me" } }, "live");
      await next();
      const narrow = follow(path, { where: { n: { $lt: 3 } } });
      await narrow();
      await change(
        path,
        entries.map(({ id }: { id: number }) => id),
      );
      const received = await narrow();
      expect(received.reset).to.equal(false);
      expect(received.inserted.length + received.updated.length + received.deleted.length).to.be.above(0);
      if (name.includes("replaces")) expect((await next()).inserted.map(({ data }) => data)).to.deep.equal([OWN_ENTRY]);
      const { id } = await insert(path, { n: 9, Owner: "me" });
      expect(withoutPosition(await next())).to.deep.equal({
        ...nothing,
        inserted: [{ id, data: { n: 9, Owner: "me" } }],
      });
    });
  }

  longTest("resets every subscriber above 10,000 entries", async () => {
    const path = await make();
    const next = follow(path, { where: { n: 1 } });
    await next();
    await service.rest("POST", `${path}/import`, { body: Array.from({ length: 10_001 }, (_, n) => ({ n })) });
    expect((await next()).reset).to.equal(true);
  });

  it("shows a page what its current rules show", async () => {
    const rules = [{ type: ["select"], allow: "all", exclude: ["Secret"] }];
    const path = await make({ accessRules: rules });
    const next = follow(path, {}, "live");
    await next();
    const editors = follow(path);
    await editors();
    await insert(path, { Name: "a", Secret: "hidden" });
    await editors();
    const first = await next();
    expect(first.inserted.map(({ data }) => data)).to.deep.equal([{ Name: "a" }]);
    const refused = next().then(
      () => null,
      ([error]) => error.extensions.status,
    );
    await service.rest("PUT", path, { body: { accessRules: [] } });
    expect(await refused).to.equal("DATA_SOURCE_ACCESS_DENIED");
  });

  it("resets a page when its rules change what it may read", async () => {
    const path = await make({ accessRules: [{ type: ["select"], allow: "all", exclude: ["Secret"] }] });
    const next = follow(path, {}, "live");
    await next();
    await service.rest("PUT", path, { body: { accessRules: [{ type: ["select"], allow: "all" }] } });
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, reset: true });
    const entry = await insert(path, { Name: "a", Secret: "shown" });
    expect(withoutPosition(await next()).inserted).to.deep.equal([
      { id: entry.id, data: { Name: "a", Secret: "shown" } },
    ]);
  });

  it("resets a page that reconnects, if its rules changed what it may read while it was disconnected", async () => {
    const path = await make({
      accessRules: [{ type: ["select"], allow: "all", exclude: ["Secret"] }],
      entries: [{ Secret: 1 }],
    });
    const { position: since } = await follow(path, {}, "live")();
    await clients.pop()!.dispose();
    await service.rest("PUT", path, { body: { accessRules: [{ type: ["select"], allow: "all" }] } });
    const rest = await follow(path, { since }, "live")();
    expect(withoutPosition(rest)).to.deep.equal({ ...nothing, reset: true });
    const next = follow(path, { since: rest.position }, "live");
    const { id } = await insert(path, { Secret: 2 });
    expect(withoutPosition(await next())).to.deep.equal({ ...nothing, inserted: [{ id, data: { Secret: 2 } }] });
  });

  const OWN_ENTRY_RULES = [
    { type: ["select"], allow: "all", exclude: ["Secret"], require: [{ Owner: { equals: "me" } }] },
  ];
  const OWN_ENTRIES_QUERY = { where: { Owner: "me" } };

  it("sends a page nothing about entries and columns that it may not read", async () => {
    const path = await make({ accessRules: OWN_ENTRY_RULES, entries: [{ Owner: "me", Name: "a", Secret: 1 }] });
    const [{ id }] = (await service.rest("POST", `${path}/query`, { body: { type: "select" } })).body.entries;
    const next = follow(path, OWN_ENTRIES_QUERY, "live");
    await next();
    const hidden = [{ Secret: 2 }, { Secret: null }, { Secret: "x".repeat(1_000) }, { Name: "a" }];
    const other = await insert(path, { Owner: "you", Name: "b" });
    for (const data of hidden) await service.rest("PUT", `${path}/entries/${id}`, { body: { data } });
    await service.rest("PUT", `${path}/entries/${other.id}`, { body: { data: { Name: "c" } } });
    await service.rest("DELETE", `${path}/entries/${other.id}`);
    await service.rest("PUT", `${path}/entries/${id}`, { body: { data: { Name: "z" } } });
    // The next message is about the only change that this subscriber can see.
    expect(withoutPosition(await next())).to.deep.equal({
      ...nothing,
      updated: [{ id, data: { Owner: "me", Name: "z" } }],
    });
  });

  it("gives a page positions that do not reveal how much others changed", async () => {
    const path = await make({ accessRules: OWN_ENTRY_RULES });
    const starts: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      starts.push((await follow(path, OWN_ENTRIES_QUERY, "live")()).position);
      await clients.pop()!.dispose();
    }
    await insert(path, { Owner: "you" });
    starts.push((await follow(path, OWN_ENTRIES_QUERY, "live")()).position);
    // All four positions differ and have the same length, although an entry was inserted only before the last one.
    expect(new Set(starts).size).to.equal(4);
    expect(new Set(starts.map(({ length }) => length)).size).to.equal(1);
    const mine = await insert(path, { Owner: "me", Name: "m" });
    for (const since of starts) {
      const { inserted } = await follow(path, { ...OWN_ENTRIES_QUERY, since }, "live")();
      expect(inserted.map(({ id }) => id)).to.deep.equal([mine.id]);
    }
  });

  for (const [since, as] of [
    ["5", "live"],
    ["soon", "live"],
    ["A".repeat(61), "reset"],
  ] as const) {
    it(`responds to a page with the position ${since.slice(0, 5)} by ${as === "reset" ? "a reset" : "REQUEST_INVALID"}`, async () => {
      const path = await make({ accessRules: OWN_ENTRY_RULES });
      const answer = await follow(path, { ...OWN_ENTRIES_QUERY, since }, "live")().then(
        ({ reset }) => (reset ? "reset" : "news"),
        ([error]) => error.extensions.status,
      );
      expect(answer).to.equal(as === "reset" ? "reset" : "REQUEST_INVALID");
    });
  }

  it("does not reveal the value of a hidden column through a page's where", async () => {
    const path = await make({ accessRules: [{ type: ["select"], allow: "all", exclude: ["Secret"] }] });
    const next = follow(path, { where: { $or: [{ Secret: "x" }, { Name: "end" }] } }, "live");
    await next();
    await insert(path, { Name: "a", Secret: "x" });
    await insert(path, { Name: "end" });
    const received: SubscriptionMessage[] = [];
    while (!received.some(({ inserted }) => inserted.length > 0)) received.push(await next());
    expect(received.flatMap(({ inserted }) => inserted.map(({ data }) => data))).to.deep.equal([{ Name: "end" }]);
  });

  for (const [who, variables, status] of [
    ["live", {}, "DATA_SOURCE_ACCESS_DENIED"],
    ["editor", { where: { n: { $bad: 1 } } }, "REQUEST_INVALID"],
    ["editor", { since: "soon" }, "REQUEST_INVALID"],
    ["editor", { ds: "absent" }, "DATA_SOURCE_NOT_FOUND"],
  ] as const) {
    it(`is rejected for ${who} with ${JSON.stringify(variables)}: ${status}`, async () => {
      const path = await make();
      const refused = await follow(path, variables, who)().then(
        () => null,
        (error) => error.message ?? error[0].extensions.status,
      );
      expect(refused).to.equal(status);
    });
  }
});
