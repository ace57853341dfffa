/** Whom a notification is for. */
import { expect } from "chai";
import { inScope, parseScope } from "../../src/rules/scope.js";
import { refusal } from "./refusal.js";

const ANN = { id: 7, firstName: "Ann", email: "ann@example.com", tags: ["a", "b"], address: { city: "Bern" } };

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
  ];
  const OTHER: unknown[] = [
    { id: 8 },
    { id: "7" },
    [],
    { email: { $nin: ["ann@example.com"] } },
    { id: { $gt: "6" } },
    { constructor: { $exists: true } },
    { "__proto__.x": { $exists: true } },
  ];
  for (const scope of MATCHING) {
    it(`${JSON.stringify(scope)} is for the user`, () => expect(inScope(parseScope(scope), ANN)).to.equal(true));
  }
  for (const scope of OTHER) {
    it(`${JSON.stringify(scope)} is not`, () => expect(inScope(parseScope(scope), ANN)).to.equal(false));
  }

  it("is never for a visitor without a name, unless it is for everybody", () => {
    expect(inScope(parseScope({}), null)).to.equal(false);
    expect(inScope(null, null)).to.equal(true);
  });

  it("is refused, by the place of the fault, where a test is none", () => {
    for (const [scope, place] of [
      [{ id: { $where: "1" } }, "scope.id"],
      [{ $or: {} }, "scope.$or"],
      [[{ id: 1 }, "x"], "scope[1]"],
      [{ id: { $in: 1 } }, "scope.id.$in"],
      [{ a: "x".repeat(20_000) }, "scope"],
    ] as const) {
      expect(refusal("REQUEST_INVALID", () => parseScope(scope)).startsWith(place), place).to.equal(true);
    }
  });
});
