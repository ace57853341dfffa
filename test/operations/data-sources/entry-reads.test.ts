/** Tests the results and errors of reading entries: lists, pages, joins, counts, distinct values, and aggregates. */
import { expect } from "chai";
import { ActionError } from "../../../src/errors.js";
import type { DataSourceKey } from "../../../src/operations/data-sources/entry-rows.js";
import { UNRESTRICTED_ENTRY_SCOPE } from "../../../src/rules/entry-query/options.js";
import { serializeJson } from "../../../src/rules/json-text.js";
import { answered, dataOf, type Fixture, startFixture } from "./fixture.js";

async function refusal(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(ActionError);
  const { status, message } = error as ActionError;
  return `${status}: ${message}`;
}

describe("reads of entries", () => {
  let fixture: Fixture;
  let people: DataSourceKey;
  let orders: DataSourceKey;
  const find = (query: unknown, key = people) => fixture.entryReader.find(key, query, fixture.readAccess());

  before(async () => {
    fixture = await startFixture();
    people = await fixture.fill("People", [
      '{"Name":"Ann","2":"two","1":{"z":1,"a":2},"Age":31}',
      { Name: "bob", Age: 5, Tags: ["x", "y"], Email: "b@x.org" },
      { Name: "Cid", Age: "7", Tags: [] },
      { Name: null, Age: 31.5, Born: "2001-02-03T23:00:00Z" },
      { Age: 31, Born: "2001-02-04" },
    ]);
    orders = await fixture.fill("Orders", [
      { Who: "Ann", Total: 10 },
      { Who: "Ann", Total: 2.5 },
      { Who: "bob", Total: "none" },
      { Who: 5, Total: 1 },
    ]);
    await fixture.fill("Secret", [{ Name: "Zoe" }], 2);
  });
  after(() => fixture.stop());

  it("keep the keys of an entry in the order in which they were written, also nested ones", async () => {
    const found = await find({ limit: 1 });
    expect(serializeJson(found.entries[0])).to.include('"data":{"Name":"Ann","2":"two","1":{"z":1,"a":2},"Age":31}');
    const pruned = await find({ limit: 1, attributes: ["Age", "data.2", "1"] });
    expect(serializeJson(pruned.entries[0])).to.include('"data":{"2":"two","1":{"z":1,"a":2},"Age":31}');
  });

  it("order by columns and by the entry's own fields, missing values and null first", async () => {
    const names = async (order: unknown) => (await find({ order })).entries.map((entry) => answered(entry).data.Name);
    expect(await names([["data.Name", "ASC"]])).to.deep.equal([null, undefined, "Ann", "Cid", "bob"]);
    expect(await names([["data.Name", "desc"]])).to.deep.equal(["bob", "Cid", "Ann", undefined, null]);
    expect(await names([["id", "DESC"]])).to.deep.equal([undefined, null, "Cid", "bob", "Ann"]);
    expect(await names([["data.Age"], ["data.Name", "DESC"]])).to.deep.equal(["Cid", "bob", "Ann", undefined, null]);
  });

  it("return the total beside a page", async () => {
    const { entries, pagination } = await find({ limit: 2, offset: 4, includePagination: true });
    expect(entries).to.have.length(1);
    expect(pagination).to.deep.equal({ total: 5, limit: 2, offset: 4 });
    expect(await fixture.entryReader.count(people, { Age: 31 }, UNRESTRICTED_ENTRY_SCOPE)).to.deep.equal({
      total: 2,
    });
  });

  it("reach every entry once by cursor, forwards and backwards, over equal values and mixed directions", async () => {
    const key = await fixture.fill(
      "Many",
      Array.from({ length: 57 }, (_, n) => ({ n, a: n % 3, b: n % 2 ? null : "x" })),
    );
    for (const order of [
      undefined,
      [["a", "ASC"]],
      [
        ["a", "DESC"],
        ["b", "ASC"],
      ],
      [
        ["createdAt", "DESC"],
        ["a", "ASC"],
      ],
      [["order", "DESC"]],
    ]) {
      const all = dataOf(await find({ order }, key));
      const pages = [];
      let page = await find({ order, limit: 10, cursor: true }, key);
      expect(page.cursor).to.include({ isFirstPage: true, isLastPage: false, prev: null });
      pages.push(dataOf(page));
      while (page.cursor!.next) {
        page = await find({ order, limit: 10, cursor: page.cursor!.next }, key);
        pages.push(dataOf(page));
      }
      expect(page.cursor!.isLastPage).to.equal(true);
      expect(pages.flat(), JSON.stringify(order)).to.deep.equal(all);
      const back = [];
      while (page.cursor!.prev) {
        page = await find({ order, limit: 10, cursor: page.cursor!.prev }, key);
        back.unshift(...dataOf(page));
      }
      expect(page.cursor!.isFirstPage).to.equal(true);
      expect(back).to.deep.equal(all.slice(0, back.length));
      expect(back).to.have.length(50);
    }
  });

  it("reject a cursor of another order, of another data source, and an invented one", async () => {
    const { cursor } = await find({ order: [["Age", "ASC"]], limit: 1, cursor: true });
    const next = cursor!.next!;
    const forged = Buffer.from(
      Buffer.from(next, "base64url")
        .toString()
        .replace(/"k":\[.*?\]/, '"k":["oops","x"]'),
    ).toString("base64url");
    for (const [query, key] of [
      [{ cursor: next }, people],
      [{ cursor: next, order: [["Age", "ASC"]] }, orders],
      [{ cursor: forged, order: [["Age", "ASC"]] }, people],
      [{ cursor: "AAAA" }, people],
      [{ cursor: "💥" }, people],
    ] as const) {
      expect(await refusal(find(query, key))).to.equal(
        'REQUEST_INVALID: cursor must be one that an earlier query of this data source with the same "order" returned',
      );
    }
  });

  it("join entries, counts and sums, and return whether there are any", async () => {
    const on = { "data.Name": "data.Who" };
    const join = {
      All: { dataSourceName: "Orders", on, order: [["data.Total", "ASC"]], attributes: ["Total"] },
      Big: { dataSourceId: orders.id, on, where: { Total: { $gt: 5 } }, limit: 1 },
      Any: { dataSourceId: orders.id, on, has: true },
      Number: { dataSourceId: orders.id, on, count: true },
      Sum: { dataSourceId: orders.id, on, sum: "data.Total" },
    };
    const [ann, bob, cid] = answered(await find({ join, limit: 3 })).entries;
    expect(ann.joins).to.deep.include({ Any: true, Number: 2, Sum: 12.5 });
    expect(ann.joins.All.map((joined: { data: unknown }) => joined.data)).to.deep.equal([
      { Total: 2.5 },
      { Total: 10 },
    ]);
    expect(ann.joins.Big[0]).to.deep.include({ dataSourceId: orders.id, data: { Who: "Ann", Total: 10 } });
    expect(bob.joins).to.deep.include({ Any: true, Number: 1, Sum: 0, Big: [] });
    expect(cid.joins).to.deep.equal({ All: [], Big: [], Any: false, Number: 0, Sum: 0 });
    const required = { Age: { dataSourceId: orders.id, on: { Age: "Who" }, required: true, count: true } };
    const found = answered(await find({ join: required, includePagination: true }));
    expect(found.pagination.total).to.equal(1);
    expect(found.entries.map((entry: { data: object; joins: object }) => [entry.data, entry.joins])).to.deep.equal([
      [{ Name: "bob", Age: 5, Tags: ["x", "y"], Email: "b@x.org" }, { Age: 1 }],
    ]);
  });

  it("join by the entry's own ID, and numbers with equal texts", async () => {
    const [first] = answered(await find({ limit: 1 })).entries;
    const links = await fixture.fill("Links", [{ To: String(first.id) }, { To: first.id }, { To: 0 }, {}]);
    const join = { People: { dataSourceName: "People", on: { "data.To": "id" }, attributes: ["Name"] } };
    const { entries } = answered(await find({ join }, links));
    expect(
      entries.map((entry: { joins: { People: { data: object }[] } }) => entry.joins.People.map(({ data }) => data)),
    ).to.deep.equal([[{ Name: "Ann" }], [{ Name: "Ann" }], [], []]);
  });

  it("join numbers with any number of digits", async () => {
    const numbers = [9_007_199_254_740_991, 1_234_567_890_123_456, 0.1234567890123456, 1e21, -1.5e-20, 5e-324];
    const links = await fixture.fill(
      "Digits",
      [...numbers, "1234567890123456"].map((To) => ({ To })),
    );
    const on = { "data.To": "data.To" };
    const join = {
      Same: { dataSourceName: "Digits", on, required: true },
      Number: { dataSourceName: "Digits", on, count: true },
    };
    const { entries } = answered(await find({ join }, links));
    const counts = entries.map(({ joins }: { joins: { Same: object[]; Number: number } }) => [
      joins.Same.length,
      joins.Number,
    ]);
    expect(counts).to.deep.equal([1, 2, 1, 1, 1, 1, 2].map((count) => [count, count]));
  });

  it("do not join entries of another app", async () => {
    const join = { Them: { dataSourceName: "Secret", on: { Name: "Name" } } };
    expect(await refusal(find({ join }))).to.equal("DATA_SOURCE_NOT_FOUND: no such data source");
    const theirs = { ...fixture.readAccess(), findJoinedSource: async () => ({ id: 1, appId: 2 }) };
    const stolen = { Them: { dataSourceId: 1, on: { Name: "Name" } } };
    expect(await refusal(fixture.entryReader.find(people, { join: stolen }, theirs))).to.include(
      "DATA_SOURCE_NOT_FOUND",
    );
  });

  it("return one entry, or none", async () => {
    const [first] = answered(await find({ limit: 1 })).entries;
    const found = answered(await fixture.entryReader.findById(people, first.id, fixture.readAccess()));
    expect(found).to.deep.equal(first);
    expect(Date.parse(found.createdAt)).to.be.a("number");
    expect(await refusal(fixture.entryReader.findById(orders, first.id, fixture.readAccess()))).to.equal(
      "ENTRY_NOT_FOUND: no such entry",
    );
    expect(
      await refusal(fixture.entryReader.findById({ ...people, appId: 2 }, first.id, fixture.readAccess())),
    ).to.include("ENTRY_NOT_FOUND");
    expect(await fixture.entryReader.findOne(people, { where: { Name: "nobody" } }, fixture.readAccess())).to.equal(
      undefined,
    );
  });

  it("return distinct values, sorted, without null", async () => {
    const values = answered(
      await fixture.entryReader.distinct(people, ["Age", "data.Name", "1.z"], UNRESTRICTED_ENTRY_SCOPE),
    );
    expect(values).to.deep.equal({ Age: ["7", 5, 31, 31.5], "data.Name": ["Ann", "Cid", "bob"], "1.z": [1] });
  });

  it("aggregate, with the names of a stage in its order", async () => {
    const aggregate = [
      { $match: { Age: { $exists: true } } },
      { $project: { Age: 1, years: { $convertToNumber: "$Age" } } },
      { $group: { _id: null, total: { $sum: "$years" }, first: { $first: "$Age" }, all: { $push: "$years" } } },
    ];
    expect(serializeJson((await find({ aggregate })).entries)).to.equal(
      '[{"_id":null,"total":105.5,"first":31,"all":[31, 5, 7, 31.5, 31]}]',
    );
  });

  it("support the conditions of $filters", async () => {
    const cases: [column: string, condition: string, value: unknown, found: number[]][] = [
      ["Name", "==", "ANN", [0]],
      ["Name", "!=", "ann", [1, 2, 3, 4]],
      ["Age", "==", "31", [0, 4]],
      ["Age", ">", "6", [0, 2, 3, 4]],
      ["Age", "<=", 7, [1, 2]],
      ["Age", "between", { from: 5, to: "7" }, [1, 2]],
      ["Name", "contains", "N", [0]],
      ["Tags", "contains", "X", [1]],
      ["Tags", "empty", null, [0, 2, 3, 4]],
      ["Name", "notempty", undefined, [0, 1, 2]],
      ["Name", "oneof", ["BOB", "cid"], [1, 2]],
      ["Name", "oneof", "bob, ann", [0, 1]],
      ["Tags", "oneof", ["y"], [1]],
      ["Born", "dateis", "2001-02-03", [3]],
      ["Born", "datebefore", "2001-02-04", [3]],
      ["Born", "dateafter", "2001-02-03T10:00:00Z", [4]],
      ["Born", "datebetween", ["2001-02-03", "2001-02-04"], [3, 4]],
    ];
    const all = dataOf(await find({}));
    for (const [column, condition, value, expected] of cases) {
      const found = dataOf(await find({ where: { $filters: [{ column, condition, value }] } }));
      expect(found, `${column} ${condition} ${JSON.stringify(value)}`).to.deep.equal(expected.map((at) => all[at]));
    }
  });

  it("reject a condition of $filters that compares with nothing", async () => {
    for (const [filter, place] of [
      [{ condition: ">", value: null }, "value must be a number or a text (got null)"],
      [{ condition: "<=" }, "value must be a number or a text (got nothing)"],
      [{ condition: "between", value: { to: 10 } }, "value.from must be a number or a text (got nothing)"],
      [{ condition: "between", value: [1, null] }, "value[1] must be a number or a text (got null)"],
    ] as const)
      expect(await refusal(find({ where: { $filters: [{ column: "Age", ...filter }] } }))).to.equal(
        `REQUEST_INVALID: where.$filters[0].${place}`,
      );
  });

  it("reach the entry's own fields and columns with a dot, and ignore case with $iLike", async () => {
    const [first] = answered(await find({ limit: 1 })).entries;
    expect(dataOf(await find({ where: { "entry.id": first.id } }))).to.have.length(1);
    expect(dataOf(await find({ where: { id: first.id } }))).to.have.length(0);
    expect(dataOf(await find({ where: { "entry.createdAt": { $gte: first.createdAt } } }))).to.have.length(5);
    const dotted = await fixture.fill("Dotted", [{ "Dr. Who": 1 }, { Dr: { " Who": 2 } }, { data: { x: 3 } }]);
    expect(dataOf(await find({ where: { "Dr\\. Who": 1 } }, dotted))).to.deep.equal([{ "Dr. Who": 1 }]);
    expect(dataOf(await find({ where: { "data.data.x": 3 } }, dotted))).to.deep.equal([{ data: { x: 3 } }]);
    expect(dataOf(await find({ where: { Email: { $iLike: "B@X" } } }))).to.have.length(1);
    expect(dataOf(await find({ where: { Tags: { $all: [null] } } }))).to.have.length(3);
  });

  it("name the error of a query, the expected and the received value", async () => {
    const cases: [query: unknown, words: string][] = [
      [{ wher: {} }, 'wher is not a known field; the nearest known field is "where"'],
      [{ where: [] }, 'where must be an object with conditions, such as {"Status": "open"} (got an array of 0)'],
      [{ where: { a: { $foo: 1 } } }, "where.a can contain only $eq"],
      [{ where: { $where: "1" } }, "where can contain only columns, $and"],
      [{ where: { a: { $gt: null } } }, "where.a.$gt must be a number, a text or a boolean (got null)"],
      [{ where: { a: { $in: 1 } } }, "where.a.$in must be an array of 0 to 10,000 items (got 1)"],
      [{ where: { a: { $mod: [0, 1] } } }, "where.a.$mod[0] must be a divisor other than 0 (got 0)"],
      [{ where: { a: { $regex: "(" } } }, "where.a.$regex is not a regular expression"],
      [
        { where: { a: { $regex: "(a)\\1" } } },
        "contains a backreference, which PostgreSQL and JavaScript interpret differently",
      ],
      [{ where: { a: { $regex: "a", $options: "g" } } }, "where.a.$options can"],
      [{ where: { "a\u0000b": 1 } }, "must not contain the character U+0000 or a lone surrogate"],
      [{ where: { a: { $eq: "\ud800" } } }, "where.a.$eq must not contain the character U+0000 or a lone surrogate"],
      [{ where: { $or: [] } }, "where.$or must be an array of 1 to 100 items (got an array of 0)"],
      [{ where: { $filters: [{ column: "a", condition: "like" }] } }, "where.$filters[0].condition must be one of =="],
      [{ order: [["a", "UP"]] }, 'order[0][1] must be ASC or DESC (got "UP")'],
      [{ limit: -1 }, "limit must be a whole number of 0 or more"],
      [
        { join: { A: { dataSourceId: 1 } } },
        'join.A.on must be an object of 1 to 3 pairs of columns, such as {"_id": "OrderId"} (got nothing)',
      ],
      [{ aggregate: [{ $lookup: {} }] }, "aggregate[0] can contain only $match"],
      [{ aggregate: [{ $group: { _id: null, x: { $median: "$a" } } }] }, "aggregate[0].$group.x can contain only $sum"],
    ];
    for (const [query, words] of cases) expect(await refusal(find(query)), JSON.stringify(query)).to.include(words);
  });

  it("limit depth, operators and lists of a query", async () => {
    const nested = (levels: number): object => (levels === 0 ? { a: 1 } : { $and: [nested(levels - 1)] });
    expect(await refusal(find({ where: nested(13) }))).to.include("must nest at most 12 levels");
    const wide = { $or: Array.from({ length: 100 }, (_, n) => ({ a: { $gt: n, $lt: n, $ne: n } })) };
    expect(await refusal(find({ where: wide }))).to.include("where must have at most 250 operators");
    const elements = (levels: number): object =>
      levels === 0 ? { a: 1 } : { "a.b.c.d": { $elemMatch: elements(levels - 1) } };
    expect(await refusal(find({ where: elements(11) }))).to.include("where must have at most 250 operators");
    expect(dataOf(await find({ where: { Age: { $in: Array.from({ length: 10_000 }, (_, n) => n) } } }))).to.have.length(
      3,
    );
  });
});
