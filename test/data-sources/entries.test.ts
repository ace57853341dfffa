/** Tests data sources and their entries over REST and GraphQL, as an app's backend uses them. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("data sources", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  const make = async (name: string, more: object = {}) =>
    (await service.rest("POST", base, { body: { name, ...more } })).body.dataSource;
  const insert = async (name: string, data: object) =>
    (await service.rest("POST", `${base}/${name}/entries`, { body: data })).body;
  const refusal = ({ http, body }: { http: number; body: { status: string } }) => `${http} ${body.status}`;

  it("are created with columns and entries, 201, and found by ID and by name", async () => {
    const made = await service.rest("POST", base, {
      body: { name: "Speakers of 2026", columns: ["Name"], entries: [{ Name: "Ada", Topic: "engines" }] },
    });
    expect(made.http).to.equal(201);
    expect(made.body).to.have.keys("dataSource");
    const { dataSource } = made.body;
    expect(dataSource).to.have.keys(
      ...[
        "id",
        "appId",
        "organizationId",
        "name",
        "columns",
        "accessRules",
        "hooks",
        "indexes",
        "isUsers",
        "createdAt",
        "updatedAt",
      ],
    );
    expect(dataSource.columns).to.deep.equal(["Name", "Topic"]);
    const byName = await service.rest("GET", `${base}/${encodeURIComponent("Speakers of 2026")}`);
    expect(byName.body).to.deep.equal(made.body);
    expect((await service.rest("GET", `${base}/${dataSource.id}`)).body).to.deep.equal(made.body);
    expect((await service.rest("GET", base)).body.dataSources).to.deep.include(dataSource);
  });

  it("have unique names in the app, with case, also after renaming", async () => {
    await make("Unique");
    expect(refusal(await service.rest("POST", base, { body: { name: "Unique" } }))).to.equal("409 NAME_ALREADY_EXISTS");
    const other = await make("unique");
    const renamed = await service.rest("PUT", `${base}/${other.id}`, { body: { name: "Unique" } });
    expect(refusal(renamed)).to.equal("409 NAME_ALREADY_EXISTS");
    expect(
      (await service.rest("PUT", `${base}/${other.id}`, { body: { name: "Else" } })).body.dataSource.name,
    ).to.equal("Else");
  });

  for (const [title, body, status] of [
    ["no name", {}, "NAME_REQUIRED"],
    ["an empty name", { name: " " }, "NAME_EMPTY"],
    ["a name of 256 characters", { name: "n".repeat(256) }, "NAME_TOO_LONG"],
    ["a field that there is not", { name: "x", rules: [] }, "REQUEST_INVALID"],
    [
      "a misspelt field of a rule",
      { name: "x", accessRules: [{ type: ["select"], allow: "all", exlude: ["a"] }] },
      "REQUEST_INVALID",
    ],
    ["a hook that sends nothing to anybody", { name: "x", hooks: [{ type: "email" }] }, "REQUEST_INVALID"],
    ["entries that are none", { name: "x", entries: [1] }, "REQUEST_INVALID"],
  ] as const) {
    it(`are rejected with ${title}: ${status}, and nothing is created`, async () => {
      const before = (await service.rest("GET", base)).body.dataSources.length;
      expect(refusal(await service.rest("POST", base, { body }))).to.equal(`400 ${status}`);
      expect((await service.rest("GET", base)).body.dataSources).to.have.length(before);
    });
  }

  it("are deleted with their entries", async () => {
    const { id } = await make("Gone", { entries: [{ a: 1 }] });
    expect((await service.rest("DELETE", `${base}/Gone`)).http).to.equal(200);
    expect(refusal(await service.rest("GET", `${base}/Gone`))).to.equal("404 DATA_SOURCE_NOT_FOUND");
    const left = await rows(service.db, "SELECT FROM data_source_entry WHERE data_source_id = $1", [id]);
    expect(left).to.deep.equal([]);
  });

  describe("entries", () => {
    before(() => make("People"));

    it("are inserted unchanged, 201 and without a wrapper, with their keys in order and an ETag", async () => {
      const data = { Zoe: 1, Name: "Ada", a: null, nested: { z: 1, a: [1, "2", { y: 0, b: 1 }] } };
      const made = await service.rest("POST", `${base}/People/entries`, { body: data });
      expect(made.http).to.equal(201);
      expect(made.body).to.have.keys("id", "dataSourceId", "data", "order", "createdAt", "updatedAt");
      expect(JSON.stringify(made.body.data)).to.equal(JSON.stringify(data));
      expect(made.headers.get("etag")).to.equal(`"${made.body.updatedAt}"`);
      const read = await service.rest("GET", `${base}/People/entries/${made.body.id}`);
      expect(JSON.stringify(read.body)).to.equal(JSON.stringify(made.body));
      expect(read.headers.get("etag")).to.equal(made.headers.get("etag"));
    });

    it("are found with the total of all pages, unless the query turns it off or has none", async () => {
      await make("paged", { entries: [{ A: 1 }, { A: 2 }, { A: 3 }] });
      const paginationOf = async (query: object) =>
        (await service.rest("POST", `${base}/paged/query`, { body: query })).body.pagination;
      for (const limit of [0, 1, 3, 10]) {
        const expected = { total: 3, limit, offset: 0 };
        expect(await paginationOf({ type: "select", limit })).to.deep.equal(expected);
      }
      const without = [{ includePagination: false }, { cursor: true }, { aggregate: [{ $limit: 1 }] }];
      for (const query of without) expect(await paginationOf({ limit: 1, ...query })).to.equal(undefined);
    });

    it("add new columns to the list of the data source", async () => {
      await insert("People", { Name: "Grace", "Never met": 1 });
      expect((await service.rest("GET", `${base}/People`)).body.dataSource.columns).to.include("Never met");
    });

    it("merge top-level columns on update, and never get the same updatedAt twice", async () => {
      const { id, updatedAt } = await insert("People", { Name: "Ada", Tags: { a: 1, b: 2 } });
      const path = `${base}/People/entries/${id}`;
      const first = await service.rest("PUT", path, { body: { Tags: { c: 3 } } });
      expect(first.body.data).to.deep.equal({ Name: "Ada", Tags: { c: 3 } });
      const second = await service.rest("PUT", path, { body: { Age: 36 } });
      const times = [updatedAt, first.body.updatedAt, second.body.updatedAt];
      expect([...new Set(times)].sort()).to.deep.equal(times);
    });

    it("are changed if If-Match has the current state, otherwise 409 ENTRY_CHANGED with the current entry", async () => {
      const { id } = await insert("People", { Seats: 1 });
      const path = `${base}/People/entries/${id}`;
      const tag = (await service.rest("GET", path)).headers.get("etag")!;
      const headers = { "if-match": tag };
      const bookSeat = (by: string) => service.rest("PUT", path, { body: { Seats: 0, by }, headers });
      const answers = await Promise.all([bookSeat("one"), bookSeat("two"), bookSeat("three")]);
      expect(answers.map(({ http }) => http).sort()).to.deep.equal([200, 409, 409]);
      const winner = answers.find(({ http }) => http === 200)!.body;
      for (const { http, body } of answers) {
        if (http !== 409) continue;
        expect(body.status).to.equal("ENTRY_CHANGED");
        expect(body.entry).to.deep.equal(winner);
      }
      expect(refusal(await service.rest("DELETE", path, { headers }))).to.equal("409 ENTRY_CHANGED");
      const gone = await service.rest("DELETE", path, { headers: { "if-match": `"${winner.updatedAt}"` } });
      expect([gone.http, gone.body.data]).to.deep.equal([200, winner.data]);
      expect(refusal(await service.rest("GET", path))).to.equal("404 ENTRY_NOT_FOUND");
    });

    it("are changed with ifUpdatedAt over GraphQL", async () => {
      const { id, updatedAt } = await insert("People", { n: 1 });
      const text = `mutation ($app: Int!, $id: Int!, $at: DateTime) {
        updateEntry(appId: $app, dataSourceId: "People", id: $id, data: {n: 2}, ifUpdatedAt: $at) { id data updatedAt }
      }`;
      const variables = { app: service.appId, id, at: updatedAt };
      expect((await service.graphql(text, variables)).data.updateEntry.data).to.deep.equal({ n: 2 });
      const { extensions } = (await service.graphql(text, variables)).errors![0];
      expect([extensions.status, extensions.entry.data]).to.deep.equal(["ENTRY_CHANGED", { n: 2 }]);
    });

    for (const [title, data, expected] of [
      ["an array", [1], "400 REQUEST_INVALID"],
      ["a text", '"text"', "400 REQUEST_INVALID"],
      ["the character U+0000", { a: "x\0y" }, "400 REQUEST_INVALID"],
      ["half a surrogate pair", '{"a": ["\\ud800"]}', "400 REQUEST_INVALID"],
      ["a column without a name", { "": 1 }, "400 REQUEST_INVALID"],
      ["a column __proto__", '{"__proto__": 1}', "400 REQUEST_INVALID"],
      ["a number beyond all", '{"a": 1e999}', "400 REQUEST_INVALID"],
      ["101 levels", `{"a": ${"[".repeat(101)}${"]".repeat(101)}}`, "400 REQUEST_INVALID"],
      [
        "1,001 columns",
        Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`c${at}`, 1])),
        "400 REQUEST_INVALID",
      ],
    ] as const) {
      it(`are rejected with ${title}: ${expected}`, async () => {
        const count = async () => (await rows(service.db, "SELECT FROM data_source_entry")).length;
        const before = await count();
        expect(refusal(await service.rest("POST", `${base}/People/entries`, { body: data }))).to.equal(expected);
        expect(await count()).to.equal(before);
      });
    }

    it("that an update would make larger than 1 MB are rejected as a whole", async () => {
      const { id } = await insert("People", { a: "x".repeat(900_000) });
      const grown = await service.rest("PUT", `${base}/People/entries/${id}`, { body: { b: "x".repeat(900_000) } });
      expect(refusal(grown)).to.equal("413 PAYLOAD_TOO_LARGE");
    });

    it("of another app are not found by their paths", async () => {
      const { id } = await insert("People", { secret: 1 });
      const { app } = (await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } })).body;
      const other = `/v1/apps/${app.id}/data-sources`;
      await service.rest("POST", other, { as: "admin", body: { name: "People" } });
      expect(refusal(await service.rest("GET", `${other}/People/entries/${id}`, { as: "admin" }))).to.equal(
        "404 ENTRY_NOT_FOUND",
      );
      const { dataSource } = (await service.rest("GET", `${base}/People`)).body;
      expect(refusal(await service.rest("GET", `${other}/${dataSource.id}`, { as: "admin" }))).to.equal(
        "404 DATA_SOURCE_NOT_FOUND",
      );
    });
  });

  describe("a commit", () => {
    const commit = (name: string, body: object) => service.rest("POST", `${base}/${name}/commit`, { body });

    it("inserts, updates and removes, and returns counts or entries", async () => {
      await make("Commits");
      const first = await commit("Commits", {
        entries: [{ data: { n: 1, kept: true } }, { data: { n: 2 } }],
        returnEntries: true,
      });
      expect(first.http).to.equal(200);
      const [firstEntry, secondEntry] = first.body.entries;
      expect(first.body.entries.map((entry: { data: object }) => entry.data)).to.deep.equal([
        { n: 1, kept: true },
        { n: 2 },
      ]);
      const entries = [{ id: firstEntry.id, data: { n: 10 } }, { data: { n: 3 } }];
      const counts = await commit("Commits", { entries, extend: true, delete: [secondEntry.id] });
      expect(counts.body).to.deep.equal({ inserted: 1, updated: 1, deleted: 1 });
      const read = await service.rest("GET", `${base}/Commits/entries/${firstEntry.id}`);
      expect(read.body.data).to.deep.equal({ n: 10, kept: true });
      await commit("Commits", { entries: [{ id: firstEntry.id, data: { n: 11 } }] });
      expect((await service.rest("GET", `${base}/Commits/entries/${firstEntry.id}`)).body.data).to.deep.equal({
        n: 11,
      });
    });

    it("with append: false removes the entries that it does not contain", async () => {
      const { id } = await make("Replaced", { entries: [{ n: 1 }, { n: 2 }, { n: 3 }] });
      const [oldest] = await rows<{ id: number }>(
        service.db,
        "SELECT min(id) AS id FROM data_source_entry WHERE data_source_id = $1",
        [id],
      );
      const done = await commit("Replaced", {
        append: false,
        entries: [{ id: oldest!.id, data: { n: 0 } }, { data: { n: 4 } }],
      });
      expect(done.body).to.deep.equal({ inserted: 1, updated: 1, deleted: 2 });
      const left = await rows<{ data: object }>(
        service.db,
        "SELECT data FROM data_source_entry WHERE data_source_id = $1 ORDER BY id",
        [id],
      );
      expect(left.map(({ data }) => data)).to.deep.equal([{ n: 0 }, { n: 4 }]);
    });

    it("applies everything or nothing: one missing or changed entry undoes the rest", async () => {
      const { id } = await make("Whole", { entries: [{ n: 1 }] });
      const [entry] = await rows<{ id: number }>(
        service.db,
        "SELECT id FROM data_source_entry WHERE data_source_id = $1",
        [id],
      );
      const fresh = { data: { n: 2 } };
      const missing = await commit("Whole", { entries: [fresh, { id: 2_000_000_000, data: {} }] });
      expect(refusal(missing)).to.equal("404 ENTRY_NOT_FOUND");
      const ifUpdatedAt = "2020-01-01T00:00:00.000Z";
      const changed = await commit("Whole", { entries: [fresh, { id: entry!.id, data: {}, ifUpdatedAt }] });
      expect(refusal(changed)).to.equal("409 ENTRY_CHANGED");
      const twice = await commit("Whole", { entries: [fresh, { id: entry!.id, data: {} }], delete: [entry!.id] });
      expect(refusal(twice)).to.equal("400 REQUEST_INVALID");
      const left = await rows(service.db, "SELECT FROM data_source_entry WHERE data_source_id = $1", [id]);
      expect(left).to.have.length(1);
    });
  });

  describe("log events", () => {
    const eventsOf = (id: number) =>
      rows<{ type: string; entry: number | null; userId: number; data: Record<string, unknown> }>(
        service.db,
        `SELECT type, data_source_entry_id AS entry, user_id AS "userId", data FROM log_event WHERE data_source_id = $1 ORDER BY id`,
        [id],
      );

    it("have each created, updated and removed entry, with the user and the columns", async () => {
      const { id } = await make("Logged");
      const entry = await insert("Logged", { a: 1, b: 2 });
      await service.rest("PUT", `${base}/Logged/entries/${entry.id}`, { body: { b: 3 } });
      await service.rest("DELETE", `${base}/Logged/entries/${entry.id}`);
      const found = await eventsOf(id);
      expect(found.map(({ type, entry: of, data }) => [type, of, data["columns"]])).to.deep.equal([
        ["dataSource.entry.create", entry.id, ["a", "b"]],
        ["dataSource.entry.update", entry.id, ["b"]],
        ["dataSource.entry.delete", entry.id, ["a", "b"]],
      ]);
      const [person] = await rows<{ id: number; email: string }>(
        service.db,
        "SELECT id, email FROM person WHERE id = $1",
        [found[0]!.userId],
      );
      expect(found.map(({ data }) => data["_userEmail"])).to.deep.equal([person!.email, person!.email, person!.email]);
    });

    it("have each entry that a commit with append: false removes, and one event for more than a thousand", async () => {
      const { id } = await make("Swapped", { entries: [{ a: 1 }, { b: 1, c: 2 }, { d: 1 }] });
      const commit = (body: object) => service.rest("POST", `${base}/Swapped/commit`, { body });
      const list = async () => (await service.rest("POST", `${base}/Swapped/query`, { body: {} })).body.entries;
      const [first, second, third] = await list();
      await commit({ append: false, entries: [{ id: second.id, data: { b: 2 } }, { data: { e: 1 } }] });
      expect((await eventsOf(id)).map(({ type, entry, data }) => [type, entry, data["columns"]])).to.deep.equal([
        ["dataSource.entry.delete", first.id, ["a"]],
        ["dataSource.entry.delete", third.id, ["d"]],
        ["dataSource.entry.update", second.id, ["b"]],
        ["dataSource.entry.create", (await list()).at(-1).id, ["e"]],
      ]);
      await commit({ entries: Array.from({ length: 999 }, (_, at) => ({ data: { a: at } })) });
      await commit({ append: false });
      const last = (await eventsOf(id)).at(-1)!;
      expect([last.type, last.data["deleted"]]).to.deep.equal(["dataSource.import", 1_001]);
      expect(await list()).to.deep.equal([]);
    });

    it("name the session of a person, and none for an API token", async () => {
      const { id } = await make("Sessions");
      await insert("Sessions", { a: 1 });
      await service.rest("POST", `${base}/Sessions/entries`, { as: "api", body: { a: 2 } });
      const sessions = await rows<{ kind: string | null }>(
        service.db,
        `SELECT kind FROM log_event e LEFT JOIN credential c ON c.id = e.session_id WHERE data_source_id = $1 ORDER BY e.id`,
        [id],
      );
      expect(sessions.map(({ kind }) => kind)).to.deep.equal(["editor", null]);
    });

    it("have nothing for rejected writes", async () => {
      const { id } = await make("Refused");
      await service.rest("POST", `${base}/Refused/commit`, {
        body: { entries: [{ data: { a: 1 } }, { id: 1, data: {} }] },
      });
      expect(await eventsOf(id)).to.deep.equal([]);
    });
  });
});
