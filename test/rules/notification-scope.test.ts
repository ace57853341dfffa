/** Tests the scopes of notifications: the people that a scope selects, and the cost of checking it. */
import { expect } from "chai";
import { openDatabase, rows } from "../../src/data/database.js";
import { SqlStatement } from "../../src/rules/entry-query/statement.js";
import { compileWhere } from "../../src/rules/entry-query/where.js";
import { isUserInScope, parseNotificationScope } from "../../src/rules/notification-scope.js";
import { freshDatabase } from "../harness/postgres.js";
import { refusal } from "./refusal.js";

const ANN = {
  id: 7,
  firstName: "Ann",
  email: "ann@example.com",
  tags: ["a", "b"],
  address: { city: "Bern", floor: null },
  joined: "2026-03-04T10:00:00.000Z",
  grid: [[1], [2], [3]],
  nicks: [""],
  orders: [
    { total: 5, items: [{ name: "pen" }] },
    { total: 20, items: [] },
  ],
};

describe("the scope of a notification", () => {
  const MATCHING: unknown[] = [
    null,
    {},
    { id: 7 },
    [7],
    [{ id: 8 }, { firstName: "Ann" }],
    { email: { $iLike: "@EXAMPLE" } },
    { "address.city": { $in: ["Bern"] } },
    { tags: { $in: ["b"] } },
    { id: { $gt: 6, $lte: 7 } },
    { $or: [{ id: 1 }, { $and: [{ id: 7 }, { lastName: { $exists: false } }] }] },
    { $not: { id: 8 } },
    { $nor: [{ id: 8 }] },
    { id: { $not: { $eq: 8 } } },
    { lastName: { $ne: "x" } },
    { tags: "a" },
    { tags: { $all: ["b", "a"] } },
    { tags: { $all: ["a"] } },
    { grid: { $size: 3 } },
    { grid: { $elemMatch: { $size: 1 } } },
    { orders: { $all: [{ $elemMatch: { total: 5 } }, { $elemMatch: { total: 20 } }] } },
    { tags: { $size: 2 } },
    { address: { city: "Bern", floor: null } },
    { "address.floor": { $exists: true, $type: "null" } },
    { firstName: { $type: "string" } },
    { id: { $mod: [4, 3] } },
    { "orders.total": { $gt: 10 } },
    { "orders.0.total": 5 },
    { orders: { $elemMatch: { total: { $gt: 10 }, items: { $size: 0 } } } },
    { tags: { $elemMatch: { $gt: "a" } } },
    { "orders.items.name": { $iLike: "PE" } },
    { $filters: [{ column: "firstName", condition: "==", value: "ann" }] },
    { $filters: [{ column: "id", condition: "between", value: ["6", 8] }] },
    { $filters: [{ column: "joined", condition: "datebetween", value: { from: "2026-03-01", to: "2026-03-04" } }] },
    {
      $filters: [
        { column: "lastName", condition: "empty" },
        { column: "tags", condition: "contains", value: "A" },
      ],
    },
    { $filters: [{ column: "firstName", condition: "oneof", value: "Bob, ann" }] },
  ];
  const NOT_MATCHING: unknown[] = [
    { id: 8 },
    { id: "7" },
    [],
    { email: { $nin: ["ann@example.com"] } },
    { id: { $gt: "6" } },
    { tags: { $all: ["a", "c"] } },
    { tags: { $all: [] } },
    { address: { city: "Bern" } },
    { lastName: { $type: "null" } },
    { orders: { $elemMatch: { total: 5, items: { $size: 0 } } } },
    { tags: { $elemMatch: { $gt: "b" } } },
    { $filters: [{ column: "id", condition: ">", value: 7 }] },
    { $filters: [{ column: "joined", condition: "dateafter", value: "2026-03-04" }] },
    { $filters: [{ column: "tags", condition: "empty" }] },
    { $and: [{ id: 7 }, { id: 8 }] },
    { $or: [{ id: 1 }, { id: 8 }] },
    { $nor: [{ id: 8 }, { id: 7 }] },
    { $not: { id: 7 } },
    { id: { $not: { $eq: 7 } } },
    { grid: { $size: 1 } },
    { $filters: [{ column: "nicks", condition: "empty" }] },
    { tags: { $exists: false } },
    { tags: { $ne: "a" } },
    { orders: { $all: [{ $elemMatch: { total: 5 } }, { $elemMatch: { total: 21 } }] } },
    { constructor: { $exists: true } },
    { "__proto__.x": { $exists: true } },
  ];
  for (const scope of MATCHING) {
    it(`${JSON.stringify(scope)} matches the user`, () =>
      expect(isUserInScope(parseNotificationScope(scope), ANN)).to.equal(true));
  }
  for (const scope of NOT_MATCHING) {
    it(`${JSON.stringify(scope)} does not match`, () =>
      expect(isUserInScope(parseNotificationScope(scope), ANN)).to.equal(false));
  }

  it("is the where of data sources: PostgreSQL finds Ann with the same ones", async () => {
    const { url, drop } = await freshDatabase();
    const db = await openDatabase(url, 1);
    const found = async (where: unknown) => {
      const statement = new SqlStatement(JSON.stringify(ANN));
      const condition = compileWhere(
        where,
        { documentSql: "doc", entryAlias: null, canSeeColumn: () => true },
        statement,
      );
      const sql = `SELECT ${condition} AS fits FROM (SELECT $1::jsonb AS doc) AS one`;
      return (await rows<{ fits: boolean }>(db, sql, statement.values))[0]!.fits;
    };
    try {
      for (const [scopes, fits] of [
        [MATCHING, true],
        [NOT_MATCHING, false],
      ] as const) {
        for (const scope of scopes.filter((candidate) => !Array.isArray(candidate)))
          expect([scope, await found(scope)]).to.deep.equal([scope, fits]);
      }
    } finally {
      await db.destroy();
      await drop();
    }
  });

  it("that would take long on a user with much data matches no user, at once", () => {
    const many = { ...ANN, tags: Array.from({ length: 300_000 }, (_, at) => at) };
    const scope = parseNotificationScope({
      $nor: Array.from({ length: 5 }, (_, at) => ({ tags: { $in: [-1, -at] } })),
    });
    expect(isUserInScope(scope, many)).to.equal(false);
    expect(isUserInScope(scope, { ...ANN, tags: [1, 2] })).to.equal(true);
    // The limit is 20,000 steps. The lookup of `tags` takes one step. Each value of `tags` takes one step, plus one for each item of the
    // condition's list. The list `tags` itself counts as another value.
    const fits = (where: object, length: number) =>
      isUserInScope(parseNotificationScope(where), { ...ANN, tags: Array(length).fill(1) });
    for (const [where, most] of [
      [{ tags: { $ne: 2 } }, 19_998],
      [{ tags: { $nin: [2, 3, 4] } }, 4_998],
    ] as const) {
      expect([fits(where, most), fits(where, most + 1)], JSON.stringify(where)).to.deep.equal([true, false]);
    }
  });

  it("never matches an anonymous visitor, unless it is for everyone", () => {
    expect(isUserInScope(parseNotificationScope({}), null)).to.equal(false);
    expect(isUserInScope(null, null)).to.equal(true);
  });

  it("has at most 16 KiB, 20 levels and a thousand entries in its list", () => {
    const accepted = (value: unknown) => {
      try {
        parseNotificationScope(value);
        return true;
      } catch {
        return false;
      }
    };
    const scopeOfBytes = (bytes: number) => ({ a: "x".repeat(bytes - 8) });
    expect(JSON.stringify(scopeOfBytes(100))).to.have.length(100);
    expect([16_384, 16_385].map((bytes) => accepted(scopeOfBytes(bytes)))).to.deep.equal([true, false]);
    const listOfLength = (length: number) => Array.from({ length }, (_, at) => at);
    expect([1_000, 1_001].map((length) => accepted(listOfLength(length)))).to.deep.equal([true, false]);
    const nestedObject = (levels: number): object => (levels === 1 ? { a: 1 } : { b: nestedObject(levels - 1) });
    expect([20, 21].map((levels) => accepted(nestedObject(levels)))).to.deep.equal([true, false]);
  });

  it("is rejected with the position of an invalid test", () => {
    for (const [scope, place] of [
      [{ id: { $where: "1" } }, "scope.id"],
      [{ $or: {} }, "scope.$or"],
      [[{ id: 1 }, "x"], "scope[1] must be an object with conditions on columns of the app user"],
      [{ id: { $in: 1 } }, "scope.id.$in"],
      [{ $or: [{ email: { $regex: "^(a+)+$" } }] }, "scope.$or[0].email"],
      [{ a: "x".repeat(20_000) }, "scope"],
    ] as const) {
      expect(refusal("REQUEST_INVALID", () => parseNotificationScope(scope)).startsWith(place), place).to.equal(true);
    }
  });
});
