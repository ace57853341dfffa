/** Tests access rules for callers: each combination of caller, operation and form of rule. Checks that hidden columns appear nowhere. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { ENTRY_VERBS } from "../../src/rules/entries/access-rules.js";
import { sampleOf } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { ACCESS_RULE_FORMS, CALLS_OF_VERBS, PAGES, type TestCaller, TRUSTED, tokensOf } from "./callers.js";

const SECRET = "hidden-from-pages";

describe("access rules", () => {
  let service: TestService;
  let base: string;
  const tokens: Partial<Record<TestCaller, string>> = {};
  let made = 0;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
    Object.assign(tokens, await tokensOf(service));
  });
  after(() => service.stop());

  const tokenOfCaller = (who: TestCaller): string | null => tokens[who] ?? null;

  async function sample(accessRules: object[], data: object = { Name: "a", Secret: SECRET }) {
    made += 1;
    const name = `sample ${made}`;
    const { body } = await service.rest("POST", base, { body: { name, accessRules, entries: [data] } });
    const [entry] = await rows<{ id: number }>(
      service.db,
      "SELECT id FROM data_source_entry WHERE data_source_id = $1",
      [body.dataSource.id],
    );
    return { path: `${base}/${body.dataSource.id}`, id: entry!.id };
  }

  for (const [index, verb] of ENTRY_VERBS.entries()) {
    for (const [form, { rule, allowed }] of sampleOf(Object.entries(ACCESS_RULE_FORMS), index, 3)) {
      it(`${verb} by ${form} is for ${allowed.join(", ") || "no page"}`, async () => {
        const rules = rule === null ? [] : [{ type: [verb], ...rule }];
        const outcomes: Record<string, unknown[]> = {};
        const expected: Record<string, unknown[]> = {};
        // Requests that only read, or that the service must refuse, share this data source, because they do not change it.
        const sharedSample = await sample(rules);
        for (const who of PAGES) {
          for (const [at, call] of CALLS_OF_VERBS[verb].entries()) {
            const { path, id } = allowed.includes(who) && verb !== "select" ? await sample(rules) : sharedSample;
            const [method, to, body] = call(path, id);
            const { http, body: answer } = await service.rest(method, to, { as: tokenOfCaller(who), body });
            outcomes[`${who} ${at}`] = http < 400 ? [true] : [false, answer.status];
            const refusal = who === "nobody" ? "UNAUTHORIZED" : "DATA_SOURCE_ACCESS_DENIED";
            expected[`${who} ${at}`] = allowed.includes(who) ? [true] : [false, refusal];
          }
        }
        expect(outcomes).to.deep.equal(expected);
        expect((await service.rest("POST", `${sharedSample.path}/query`, { body: {} })).body.entries).to.have.length(1);
      });
    }

    it(`${verb} needs no rule for ${TRUSTED.join(", ")}`, async () => {
      for (const who of TRUSTED) {
        for (const call of CALLS_OF_VERBS[verb]) {
          const { path, id } = await sample([]);
          const [method, to, body] = call(path, id);
          expect(
            (await service.rest(method, to, { as: tokenOfCaller(who), body })).http,
            `${who} ${method} ${to}`,
          ).to.be.below(300);
        }
      }
    });

    it(`${verb} grants nothing else`, async () => {
      for (const other of ENTRY_VERBS.filter((candidate) => candidate !== verb)) {
        const { path, id } = await sample([{ type: [verb], allow: "all" }]);
        for (const call of CALLS_OF_VERBS[other]) {
          const [method, to, body] = call(path, id);
          const answer = await service.rest(method, to, { as: "live", body });
          expect(answer.body.status, `${other} ${to}`).to.equal("DATA_SOURCE_ACCESS_DENIED");
        }
      }
      const { path } = await sample([{ type: [verb], allow: "all" }]);
      for (const [method, to] of [
        ["GET", path],
        ["PUT", path],
        ["DELETE", path],
        ["GET", `${path}/versions`],
        ["GET", base],
      ] as const) {
        expect(
          (await service.rest(method, to, { as: "live", body: method === "PUT" ? {} : undefined })).body.status,
        ).to.equal("FORBIDDEN");
      }
    });
  }

  it("use the first rule that matches: a later rule neither restricts nor adds", async () => {
    const { path, id } = await sample([
      { type: ["select"], allow: "loggedIn", include: ["Name"] },
      { type: ["select"], allow: "all", exclude: ["Name"] },
    ]);
    const seen = async (who: TestCaller) =>
      (await service.rest("GET", `${path}/entries/${id}`, { as: tokenOfCaller(who) })).body.data;
    expect(await seen("london")).to.deep.equal({ Name: "a" });
    expect(await seen("live")).to.deep.equal({ Secret: SECRET });
  });

  it("do not reveal whether a data source exists", async () => {
    const { path } = await sample([]);
    const there = await service.rest("POST", `${path}/query`, { as: "live", body: {} });
    const absent = await service.rest("POST", `${base}/2000000000/query`, { as: "live", body: {} });
    expect(absent.body).to.deep.equal(there.body);
    const anonymousAnswer = await service.rest("POST", `${base}/2000000000/query`, { as: null, body: {} });
    expect(anonymousAnswer.body).to.deep.equal(
      (await service.rest("POST", `${path}/query`, { as: null, body: {} })).body,
    );
  });

  it("apply from the first request after their change", async () => {
    const { path } = await sample([]);
    const queryStatus = async () => (await service.rest("POST", `${path}/query`, { as: "live", body: {} })).http;
    expect(await queryStatus()).to.equal(403);
    await service.rest("PUT", path, { body: { accessRules: [{ type: ["select"], allow: "all" }] } });
    expect(await queryStatus()).to.equal(200);
    await service.rest("PUT", path, { body: { accessRules: [] } });
    expect(await queryStatus()).to.equal(403);
  });

  describe("that hide a column", () => {
    for (const [how, more] of [
      ["exclude", { exclude: ["Secret"] }],
      ["include", { include: ["Name", "Ref"] }],
    ] as const) {
      it(`by ${how} hide it in every read, and in everything that a query can use`, async () => {
        const everything = [...ENTRY_VERBS];
        const { path, id } = await sample([{ type: everything, allow: "all", ...more }], {
          Name: "a",
          Ref: 1,
          Secret: SECRET,
        });
        const other = await sample([{ type: ["select"], allow: "all" }], { Ref: 1, Guess: SECRET });
        const otherId = Number(other.path.split("/").at(-1));
        const ask = (body: object) => service.rest("POST", `${path}/query`, { as: "live", body });
        const shown = [
          await service.rest("GET", `${path}/entries/${id}`, { as: "live" }),
          await ask({}),
          await ask({ attributes: ["Secret"] }),
          await ask({ attributes: ["data.Secret", "Name"] }),
          await ask({ aggregate: [{ $project: { s: "$Secret", d: "$data.Secret" } }] }),
          await ask({ aggregate: [{ $group: { _id: "$Secret" } }] }),
          await ask({ aggregate: [{ $group: { _id: null, all: { $push: "$Secret" } } }] }),
          await ask({ join: { J: { dataSourceId: otherId, on: { "data.Secret": "data.Guess" } } } }),
          await service.rest("GET", `${path}/indexes/Secret`, { as: "live" }),
          await service.rest("GET", `${path}/indexes/Name,Secret`, { as: "live" }),
          await service.rest("PUT", `${path}/entries/${id}`, { as: "live", body: { data: { Name: "b" } } }),
          await service.rest("PUT", `${path}/entries/${id}`, {
            as: "live",
            body: { data: { Name: "c" } },
            headers: { "if-match": '"x"' },
          }),
          await service.rest("POST", `${path}/commit`, {
            as: "live",
            body: { entries: [{ id, data: { Name: "d" } }], returnEntries: true },
          }),
          await service.rest("GET", `${path}/export?format=csv`, { as: "live" }),
          await service.rest("GET", `${path}/export?format=jsonl`, { as: "live" }),
          await service.rest("DELETE", `${path}/entries/${id}`, { as: "live" }),
        ];
        for (const { http, body } of shown) {
          expect(http).to.be.oneOf([200, 403, 409]);
          expect(JSON.stringify(body)).to.not.include(SECRET);
        }
      });

      it(`by ${how} give the same response for any value in it`, async () => {
        const rules = [{ type: ["select", "delete"], allow: "all", ...more }];
        const wheres = [
          { Secret: SECRET },
          { "data.Secret": SECRET },
          { Secret: { $regex: "^hidden" } },
          { Secret: { $exists: true } },
          { $or: [{ Secret: SECRET }, { Name: "nobody" }] },
          { $nor: [{ Secret: SECRET }] },
          { $not: { Secret: SECRET } },
          { $filters: [{ column: "Secret", condition: "contains", value: "hidden" }] },
        ];
        const [first, second] = [
          await sample(rules, { Name: "a", Secret: SECRET }),
          await sample(rules, { Name: "a", Secret: "else" }),
        ];
        const answerOf = async ({ path }: { path: string }, body: object) => {
          const { http, body: answer } = await service.rest("POST", `${path}/query`, { as: "live", body });
          return [
            http,
            answer.status,
            answer.entries?.length,
            answer.pagination?.total,
            answer.deletedCount,
            answer.error,
          ];
        };
        for (const where of wheres) {
          expect(await answerOf(first, { where, includePagination: true })).to.deep.equal(
            await answerOf(second, { where, includePagination: true }),
          );
        }
        for (const where of wheres) {
          expect(await answerOf(first, { type: "delete", where })).to.deep.equal(
            await answerOf(second, { type: "delete", where }),
          );
        }
      });

      it(`by ${how} sort as if it did not exist`, async () => {
        const rules = [{ type: ["select"], allow: "all", ...more }];
        const { path } = await sample(rules, { Name: "z", Secret: "1" });
        await service.rest("POST", `${path}/entries`, { body: { data: { Name: "y", Secret: "0" } } });
        const names = async (order: unknown) => {
          const { body } = await service.rest("POST", `${path}/query`, { as: "live", body: { order } });
          return body.entries.map(({ data }: { data: { Name: string } }) => data.Name);
        };
        expect(await names([["data.Secret", "ASC"]])).to.deep.equal(await names([["data.Absent", "ASC"]]));
        expect(await names([["data.Secret", "DESC"]])).to.deep.equal(await names([["data.Absent", "DESC"]]));
      });

      it(`by ${how} reject a write to it, and keep it if the rest is replaced`, async () => {
        const rules = [{ type: ["insert", "update"], allow: "all", ...more }];
        const { path, id } = await sample(rules);
        for (const [method, to, body] of [
          ["POST", `${path}/entries`, { data: { Secret: "x" } }],
          ["PUT", `${path}/entries/${id}`, { data: { Secret: "x" } }],
          ["POST", `${path}/commit`, { entries: [{ data: { Secret: "x" } }] }],
          ["POST", `${path}/import?append=true`, [{ Secret: "x" }]],
        ] as const) {
          expect((await service.rest(method, to, { as: "live", body })).body.status, to).to.equal(
            "DATA_SOURCE_ACCESS_DENIED",
          );
        }
        await service.rest("POST", `${path}/commit`, { as: "live", body: { entries: [{ id, data: { Name: "z" } }] } });
        expect((await service.rest("GET", `${path}/entries/${id}`)).body.data).to.deep.equal({
          Secret: SECRET,
          Name: "z",
        });
      });
    }

    it("hide it from the number of removed entries, also if only the rule for reading excludes it, or if no rule allows reading", async () => {
      const removing = { type: ["delete"], allow: "all" };
      const reading = { type: ["select"], allow: "all", exclude: ["Secret"] };
      for (const rules of [[reading, removing], [removing]]) {
        for (const where of [{ Secret: SECRET }, { Name: "a", $not: { Secret: "else" } }]) {
          const { path } = await sample(rules);
          const removal = { as: "live", body: { type: "delete", where } };
          const { body } = await service.rest("POST", `${path}/query`, removal);
          const { path: other } = await sample(rules, { Name: "a", Secret: "else" });
          expect(body).to.deep.equal((await service.rest("POST", `${other}/query`, removal)).body);
        }
      }
    });

    it("hide it in a joined data source, whose own rules apply", async () => {
      const closed = await sample([], { Ref: 1, Secret: SECRET });
      const half = await sample([{ type: ["select"], allow: "all", exclude: ["Secret"] }], { Ref: 1, Secret: SECRET });
      const { path } = await sample([{ type: ["select"], allow: "all" }], { Ref: 1 });
      const join = (of: { path: string }, more: object = {}) => {
        const dataSourceId = Number(of.path.split("/").at(-1));
        const body = { join: { J: { dataSourceId, on: { "data.Ref": "data.Ref" }, ...more } } };
        return service.rest("POST", `${path}/query`, { as: "live", body });
      };
      expect((await join(closed)).body.status).to.equal("DATA_SOURCE_ACCESS_DENIED");
      expect((await join(closed, { count: true })).body.status).to.equal("DATA_SOURCE_ACCESS_DENIED");
      const seen = await join(half);
      expect(seen.body.entries[0].joins.J[0].data).to.deep.equal({ Ref: 1 });
      const counted = async (where: object) => (await join(half, { where, count: true })).body.entries[0].joins.J;
      expect(await counted({ Secret: SECRET })).to.equal(await counted({ Secret: "else" }));
    });
  });

  describe("that require", () => {
    const OWN = { Email: { equals: "{{user.Email}}" } };
    const mine = { Email: "london@example.org", n: 1 };
    const theirs = { Email: "paris@example.org", n: 2 };

    async function two(rules: object[]) {
      const { path, id } = await sample(rules, mine);
      const { body } = await service.rest("POST", `${path}/entries`, { body: { data: theirs } });
      return { path, id, other: body.id as number };
    }

    it("a column reject every query without it, in any form", async () => {
      const { path, id } = await two([{ type: ["select"], allow: "all", require: ["Email"] }]);
      const ask = async (where?: object) =>
        (await service.rest("POST", `${path}/query`, { as: "live", body: where ? { where } : {} })).http;
      expect(await ask({ Email: mine.Email })).to.equal(200);
      expect(await ask({ "data.Email": mine.Email })).to.equal(200);
      expect(await ask({ $and: [{ n: 1 }, { Email: mine.Email }] })).to.equal(200);
      for (const where of [
        undefined,
        {},
        { n: 1 },
        { $or: [{ Email: mine.Email }, {}] },
        { "Email.x": 1 },
        { $nor: [{ Email: "" }] },
      ]) {
        expect(await ask(where), JSON.stringify(where)).to.equal(403);
      }
      expect((await service.rest("GET", `${path}/entries/${id}`, { as: "live" })).http).to.equal(403);
      expect((await service.rest("GET", `${path}/indexes/n`, { as: "live" })).http).to.equal(403);
    });

    it("the user's own value show, change and remove no entries of others", async () => {
      const { path, id, other } = await two([{ type: [...ENTRY_VERBS], allow: "loggedIn", require: [OWN] }]);
      const as = tokenOfCaller("london");
      const ask = async (where: object) => (await service.rest("POST", `${path}/query`, { as, body: { where } })).body;
      expect((await ask({ Email: mine.Email })).entries.map((entry: { id: number }) => entry.id)).to.deep.equal([id]);
      expect((await ask({ Email: { $exists: true } })).entries.map((entry: { id: number }) => entry.id)).to.deep.equal([
        id,
      ]);
      expect((await ask({ Email: theirs.Email })).status).to.equal("DATA_SOURCE_ACCESS_DENIED");
      const status = async (method: string, to: string, body?: object) =>
        (await service.rest(method, path + to, { as, body })).body.status;
      const absent = 2_000_000_000;
      for (const at of [other, absent]) {
        expect(await status("GET", `/entries/${at}`)).to.equal("ENTRY_NOT_FOUND");
        expect(await status("PUT", `/entries/${at}`, { data: { ...mine, n: 3 } })).to.equal("ENTRY_NOT_FOUND");
        expect(await status("DELETE", `/entries/${at}`)).to.equal("ENTRY_NOT_FOUND");
        expect(await status("POST", "/commit", { delete: [at] })).to.equal("ENTRY_NOT_FOUND");
        expect(await status("POST", "/commit", { entries: [{ id: at, data: mine }] })).to.equal("ENTRY_NOT_FOUND");
      }
      expect(await status("PUT", `/entries/${id}`, { data: theirs })).to.equal("DATA_SOURCE_ACCESS_DENIED");
      expect(await status("POST", "/entries", { data: theirs })).to.equal("DATA_SOURCE_ACCESS_DENIED");
      expect(await status("POST", "/commit", { append: false })).to.equal("DATA_SOURCE_ACCESS_DENIED");
      expect(await status("POST", "/query", { type: "delete", where: { n: 2 } })).to.equal("DATA_SOURCE_ACCESS_DENIED");
      const removed = await service.rest("POST", `${path}/query`, {
        as,
        body: { type: "delete", where: { Email: { $exists: true } } },
      });
      expect(removed.body).to.deep.equal({ deletedCount: 1 });
      expect((await service.rest("GET", `${path}/entries/${other}`)).body.data).to.deep.equal(theirs);
    });

    it("a part of a text show the same entries in lists and by their IDs: no numbers, booleans and inner lists", async () => {
      const values = ["x1tRue", 1, true, ["1true"], [1, "a"], [["1true"]], { a: "1true" }, null];
      for (const contains of ["1", "true"]) {
        const rule = { type: ["select"], allow: "all", require: [{ Name: { contains } }] };
        const { path } = await sample([rule], { Name: "other" });
        await service.rest("POST", `${path}/commit`, { body: { entries: values.map((Name) => ({ data: { Name } })) } });
        const [as, query] = [tokenOfCaller("live"), { body: { where: { Name: { $exists: true } } } }];
        const readable = (await service.rest("POST", `${path}/query`, { as, ...query })).body.entries;
        const names = readable.map(({ data }: { data: { Name: unknown } }) => data.Name);
        expect(names, contains).to.deep.equal(["x1tRue", ["1true"]]);
        for (const { id, data } of (await service.rest("POST", `${path}/query`, query)).body.entries) {
          const { http } = await service.rest("GET", `${path}/entries/${id}`, { as });
          expect(http, JSON.stringify(data)).to.equal(
            readable.some((entry: { id: number }) => entry.id === id) ? 200 : 404,
          );
        }
      }
    });

    it("a value that the user does not have reject the user, and do not match all who have none", async () => {
      const { path } = await sample(
        [{ type: ["select"], allow: "loggedIn", require: [{ Boss: { equals: "{{user.Boss}}" } }] }],
        { n: 1 },
      );
      for (const where of [{ Boss: null }, { Boss: { $exists: false } }, {}]) {
        expect(
          (await service.rest("POST", `${path}/query`, { as: tokenOfCaller("london"), body: { where } })).http,
        ).to.equal(403);
      }
    });
  });

  it("a column by name show nothing of an entry that is read by its ID", async () => {
    const rules = [
      { type: ["select"], allow: "all", require: ["Email"] },
      { type: ["update"], allow: "all" },
    ];
    const { path, id } = await sample(rules, { Email: "a", Secret: SECRET });
    const updated = await service.rest("PUT", `${path}/entries/${id}`, { as: "live", body: { data: { b: 2 } } });
    expect(updated.body.data).to.deep.equal({ b: 2 });
  });

  it("nothing for reading: a writer without the right to read gets back only what it wrote", async () => {
    const { path, id } = await sample([{ type: ["insert", "update"], allow: "all" }]);
    const inserted = await service.rest("POST", `${path}/entries`, { as: "live", body: { data: { a: 1 } } });
    expect(inserted.body.data).to.deep.equal({ a: 1 });
    const updated = await service.rest("PUT", `${path}/entries/${id}`, { as: "live", body: { data: { b: 2 } } });
    expect(updated.body.data).to.deep.equal({ b: 2 });
    const stale = await service.rest("PUT", `${path}/entries/${id}`, {
      as: "live",
      body: { data: { b: 3 } },
      headers: { "if-match": '"x"' },
    });
    expect([stale.body.status, stale.body.entry]).to.deep.equal(["ENTRY_CHANGED", null]);
  });
});
