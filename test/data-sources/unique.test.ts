/** Tests unique indexes: no two entries have the same unique value, on each way to write entries, and with many writes at once. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { untilLockWait } from "../harness/lock-waits.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

const UNIQUE_EMAIL = [{ columns: ["Email"], unique: true }];

describe("a unique index of a data source", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  const make = (name: string, more: object = {}) =>
    service.rest("POST", base, { body: { name, indexes: UNIQUE_EMAIL, ...more } });
  const insert = (name: string, data: object, as?: string) =>
    service.rest("POST", `${base}/${name}/entries`, { body: { data }, ...(as && { as }) });
  const emails = async (name: string) =>
    (await service.rest("POST", `${base}/${name}/query`, { body: {} })).body.entries.map(
      ({ data }: { data: { Email?: unknown } }) => data.Email ?? null,
    );
  const refused = ({ http, body }: { http: number; body: { status: string; columns?: string[] } }) => [
    http,
    body.status,
    body.columns,
  ];
  const ALREADY_EXISTS = [409, "ENTRY_ALREADY_EXISTS", ["Email"]];

  it("rejects a duplicate by insert, update, commit and import, names the columns and writes nothing", async () => {
    const made = await make("Writes", { entries: [{ Email: "a@x.org" }, { Email: "b@x.org" }] });
    expect([made.http, made.body.dataSource.indexes]).to.deep.equal([201, UNIQUE_EMAIL]);
    const found = (await service.rest("POST", `${base}/Writes/query`, { body: {} })).body.entries;
    const answer = await insert("Writes", { Email: "a@x.org" });
    expect(refused(answer)).to.deep.equal(ALREADY_EXISTS);
    expect(answer.body.error).to.equal('an entry with the same "Email" already exists');
    const update = { body: { data: { Email: "a@x.org" } } };
    expect(refused(await service.rest("PUT", `${base}/Writes/entries/${found[1].id}`, update))).to.deep.equal(
      ALREADY_EXISTS,
    );
    for (const entries of [
      [{ data: { Email: "c@x.org" } }, { data: { Email: "b@x.org" } }],
      [{ data: { Email: "c@x.org" } }, { data: { Email: "c@x.org" } }],
    ]) {
      expect(refused(await service.rest("POST", `${base}/Writes/commit`, { body: { entries } }))).to.deep.equal(
        ALREADY_EXISTS,
      );
    }
    const many = Array.from({ length: 2_500 }, (_, n) => `m${n}@x.org`);
    for (const lines of [
      ["c@x.org", "a@x.org"],
      ["c@x.org", "c@x.org"],
      [...many, "a@x.org"],
    ]) {
      const file = { headers: { "content-type": "text/csv" }, body: ["Email", ...lines].join("\n") };
      expect(refused(await service.rest("POST", `${base}/Writes/import?append=true`, file))).to.deep.equal(
        ALREADY_EXISTS,
      );
    }
    expect(await emails("Writes")).to.deep.equal(["a@x.org", "b@x.org"]);
  });

  it("ignores entries without a value, and those that a replacing import or commit removes", async () => {
    await make("Replaced", { entries: [{ Email: "a@x.org" }, { Email: null }, {}] });
    expect((await insert("Replaced", { Name: "nobody" })).http).to.equal(201);
    const file = { headers: { "content-type": "text/csv" }, body: "Email\na@x.org\nb@x.org\n" };
    expect((await service.rest("POST", `${base}/Replaced/import`, file)).body.inserted).to.equal(2);
    const commit = { entries: [{ data: { Email: "a@x.org" } }], append: false };
    expect((await service.rest("POST", `${base}/Replaced/commit`, { body: commit })).http).to.equal(200);
    expect(await emails("Replaced")).to.deep.equal(["a@x.org"]);
    const { versions } = (await service.rest("GET", `${base}/Replaced/versions`)).body;
    const restored = await service.rest("POST", `${base}/Replaced/versions/${versions[0].id}/restore`);
    expect(restored.http).to.equal(200);
    expect(await emails("Replaced")).to.deep.equal(["a@x.org", "b@x.org"]);
  });

  it("accepts only one of any number of concurrent duplicates", async () => {
    await make("Raced");
    const answers = await Promise.all(Array.from({ length: 24 }, () => insert("Raced", { Email: "a@x.org" })));
    expect(answers.filter(({ http }) => http === 201)).to.have.length(1);
    expect(answers.filter(({ http }) => http === 409)).to.have.length(23);
  });

  it("is rejected if entries already have duplicates, and then blocks no write", async () => {
    await make("Alike", { indexes: ["Name"], entries: [{ Email: "a@x.org" }, { Email: "a@x.org" }] });
    const answer = await service.rest("PUT", `${base}/Alike`, { body: { indexes: UNIQUE_EMAIL } });
    expect(refused(answer)).to.deep.equal(ALREADY_EXISTS);
    expect((await service.rest("GET", `${base}/Alike`)).body.dataSource.indexes).to.deep.equal(["Name"]);
    expect((await insert("Alike", { Email: "a@x.org" })).http).to.equal(201);
    const created = await make("Never", { entries: [{ Email: "a@x.org" }, { Email: "a@x.org" }] });
    expect(refused(created)).to.deep.equal(ALREADY_EXISTS);
    expect((await service.rest("GET", `${base}/Never`)).http).to.equal(404);
  });

  it("is removed with its definition, and can have several columns", async () => {
    await make("Seats", { indexes: [{ columns: ["Row", "Seat"], unique: true }], entries: [{ Row: "A", Seat: 1 }] });
    expect((await insert("Seats", { Row: "A", Seat: 2 })).http).to.equal(201);
    expect((await insert("Seats", { Row: "A", Seat: 1 })).body.columns).to.deep.equal(["Row", "Seat"]);
    await service.rest("PUT", `${base}/Seats`, { body: { indexes: [] } });
    expect((await insert("Seats", { Row: "A", Seat: 1 })).http).to.equal(201);
  });

  it("names to a page only columns that the page may write", async () => {
    const accessRules = [{ type: ["insert", "update", "select"], allow: "all", exclude: ["Secret"] }];
    const indexes = [...UNIQUE_EMAIL, { columns: ["Name", "Secret"], unique: true }];
    const entries = [
      { Email: "a@x.org", Name: "Ada", Secret: 7 },
      { Email: "b@x.org", Name: "Bea", Secret: 7 },
    ];
    await make("Hidden", { accessRules, indexes, entries });
    const [, bea] = (await service.rest("POST", `${base}/Hidden/query`, { body: {} })).body.entries;
    expect(refused(await insert("Hidden", { Email: "a@x.org" }, "live"))).to.deep.equal(ALREADY_EXISTS);
    const renamed = { as: "live" as const, body: { data: { Name: "Ada" } } };
    const { http, body } = await service.rest("PUT", `${base}/Hidden/entries/${bea.id}`, renamed);
    expect([http, body.status]).to.deep.equal([409, "ENTRY_ALREADY_EXISTS"]);
    expect(JSON.stringify(body)).to.not.match(/Secret|7|a@x/);
  });

  for (const [title, indexes] of [
    ["no columns", [{ unique: true }]],
    ["a field that there is not", [{ columns: ["Email"], uniq: true }]],
    ["a word for unique", [{ columns: ["Email"], unique: "yes" }]],
    ["the entry's own id", [{ columns: ["entry.id"], unique: true }]],
  ] as const) {
    it(`is rejected with ${title}`, async () => {
      const { http, body } = await make(`Refused ${title}`, { indexes });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.match(/^indexes\[0\]/);
    });
  }

  it("cannot have a hashed column", async () => {
    const hooks = [{ type: "operations", runOn: ["insert"], fields: { Email: ["hash"] } }];
    const { http, body } = await make("Hashed", { hooks });
    expect([http, body.error]).to.deep.equal([400, 'the column "Email" is hashed, so it cannot have a unique index']);
  });

  it("cannot have a column that another request makes hashed at the same time", async () => {
    const { id } = (await make("Hashed later", { indexes: [] })).body.dataSource;
    const hooks = [{ type: "operations", runOn: ["insert"], fields: { Email: ["hash"] } }];
    const sent = await service.db.transaction(async (manager) => {
      await manager.query("SELECT FROM data_source WHERE id = $1 FOR NO KEY UPDATE", [id]);
      const hashed = service.rest("PUT", `${base}/${id}`, { body: { hooks } });
      await untilLockWait(manager, hashed);
      // Stores the definition of the index, as another request does after it has built the index.
      await manager.query("UPDATE data_source SET indexes = $2 WHERE id = $1", [id, JSON.stringify(UNIQUE_EMAIL)]);
      return { hashed };
    });
    const { http, body } = await sent.hashed;
    expect([http, body.error]).to.deep.equal([400, 'the column "Email" is hashed, so it cannot have a unique index']);
    const [stored] = await rows(service.db, "SELECT indexes, hooks FROM data_source WHERE id = $1", [id]);
    expect(stored).to.deep.equal({ indexes: UNIQUE_EMAIL, hooks: [] });
  });
});
