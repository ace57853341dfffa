/** Tests access rules of entries as pure functions, by invariants for generated rules, users and conditions. */
import { expect } from "chai";
import fc from "fast-check";
import {
  fillConditionPlaceholders,
  isUserAllowedByRule,
  meetsColumnConditions,
} from "../../../src/rules/caller-rules.js";
import type { EntryAccessRule } from "../../../src/rules/entries/access-rules.js";
import { parseAccessRules } from "../../../src/rules/entries/access-rules.js";
import {
  checkRequiredColumns,
  convertColumnConditionsToWhere,
  createVisibleEntryScope,
  findDecidingRuleIndex,
  findEntryPermissions,
  getColumnNamedByWhereKey,
  listWhereColumns,
  maySelectEntryById,
  rejectWhereThatContradictsRule,
} from "../../../src/rules/entries/entry-access.js";
import { separateHashedConditions } from "../../../src/rules/entries/hashed-where.js";
import { TextsOnlyOperand } from "../../../src/rules/entry-query/operators.js";
import { SqlStatement } from "../../../src/rules/entry-query/statement.js";
import { compileWhere } from "../../../src/rules/entry-query/where.js";
import { refusal } from "../refusal.js";

const COLUMNS = ["Email", "Role", "a.b", "data.x", "n"];
const column = fc.constantFrom(...COLUMNS);
const scalar = fc.oneof(
  fc.constantFrom("x", "y", "Xy", "{{user.Email}}", "{{user.[a.b]}}", "pre {{user.Role}}"),
  fc.integer(),
  fc.boolean(),
);
const tests = fc.dictionary(
  column,
  fc
    .record(
      { equals: scalar, notequals: scalar, contains: fc.constantFrom("x", "{{user.Email}}") },
      { requiredKeys: [] },
    )
    .filter((condition) => Object.keys(condition).length > 0),
  { minKeys: 1, maxKeys: 2 },
);
const rule = fc.record(
  {
    type: fc.uniqueArray(fc.constantFrom("select", "insert", "update", "delete"), { minLength: 1 }),
    allow: fc.oneof(
      fc.constantFrom("all", "loggedIn"),
      tests.map((user) => ({ user })),
    ),
    enabled: fc.boolean(),
    include: fc.array(column, { maxLength: 3 }),
    exclude: fc.array(column, { maxLength: 3 }),
    require: fc.array(fc.oneof(column, tests), { maxLength: 2 }),
  },
  { requiredKeys: ["type", "allow"] },
) as fc.Arbitrary<EntryAccessRule>;
const user = fc.option(
  fc.dictionary(
    column,
    fc.oneof(fc.constantFrom("x", "y", "", "xy"), fc.constant(null), fc.integer(), fc.constant({ $ne: "" })),
  ),
);

function grantOrNull(rules: EntryAccessRule[], who: Record<string, unknown> | null) {
  try {
    return findEntryPermissions(rules, "select", { isTrusted: false, user: who });
  } catch {
    return null;
  }
}

describe("access rules, generated", () => {
  it("are all accepted unchanged, and only a rule for all lets in a page without a user", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 4 }), (rules) => {
        expect(parseAccessRules(rules)).to.deep.equal(rules);
        const grant = grantOrNull(rules, null);
        const first = rules.find(
          ({ type, enabled, allow }) => enabled !== false && type.includes("select") && allow === "all",
        );
        if (!first) expect(grant).to.equal(null);
      }),
      { numRuns: 2_000 },
    );
  });

  it("fill every placeholder, and compare only with texts, numbers and booleans", () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 4 }), user, (rules, who) => {
        const grant = grantOrNull(rules, who);
        if (!grant) return;
        for (const test of Object.values(grant.conditions)) {
          for (const value of Object.values(test)) {
            expect(typeof value).to.be.oneOf(["string", "number", "boolean"]);
            expect(String(value)).to.not.match(/\{\{|^$/);
          }
        }
        const where = JSON.stringify(convertColumnConditionsToWhere(grant.conditions) ?? {});
        expect(where).to.not.include('"$ne":""');
      }),
      { numRuns: 2_000 },
    );
  });

  it("return for a where only columns that every found entry must match", () => {
    const where = fc.letrec((tie) => ({
      node: fc.oneof(
        fc.dictionary(column, scalar, { maxKeys: 2 }),
        fc.record({ $or: fc.array(tie("node"), { maxLength: 2 }) }),
        fc.record({ $nor: fc.array(tie("node"), { maxLength: 2 }) }),
        fc.record({ $not: tie("node") }),
      ),
    })).node;
    fc.assert(
      fc.property(where, (generated) => {
        const keys = Object.keys(generated as object).filter((key) => !key.startsWith("$"));
        expect(listWhereColumns(generated).size).to.be.at.most(keys.length);
      }),
      { numRuns: 1_000 },
    );
  });

  it("test the values of an entry, not properties that JavaScript objects inherit", () => {
    expect(meetsColumnConditions({}, { constructor: { notequals: "x" } })).to.equal(true);
    expect(meetsColumnConditions({}, { toString: { contains: "native" } })).to.equal(false);
    expect(meetsColumnConditions({ a: "5" }, { a: { equals: 5 } })).to.equal(false);
  });

  it("do not treat a list as one of its elements, except for `contains` and `notequals`", () => {
    for (const list of [["x"], ["x", "y"], [["x"]], { 0: "x" }]) {
      expect(meetsColumnConditions({ a: list }, { a: { equals: "x" } }), JSON.stringify(list)).to.equal(false);
      expect(isUserAllowedByRule({ user: { a: { equals: "x" } } }, { a: list }), JSON.stringify(list)).to.equal(false);
    }
    expect(meetsColumnConditions({ a: ["x", "y"] }, { a: { contains: "X" } })).to.equal(true);
    expect(meetsColumnConditions({ a: [["x"]] }, { a: { contains: "x" } })).to.equal(false);
    expect(meetsColumnConditions({ a: ["x", "y"] }, { a: { notequals: "x" } })).to.equal(false);
  });

  it("fill placeholders in every notation, and match no one if one cannot be read", () => {
    const filled = (text: string) =>
      fillConditionPlaceholders({ a: { equals: text } }, { Email: "me", "a b": "ab", "[x": 1 })?.a?.equals;
    expect(filled("{{user.Email}}")).to.equal("me");
    expect(filled("{{ user.Email  }}!")).to.equal("me!");
    expect(filled("{{{user.[a b]}}}")).to.equal("{ab}");
    expect(filled("{{user.[x}}")).to.equal(1);
    expect(filled("{{user.Email}} and {{user.Email}}")).to.equal("me and me");
    expect(filled("{{other.Email}}")).to.equal("{{other.Email}}");
    for (const text of ["{{user.Email", "{{user.{{user.Email", "{{ user.[a}b]}}", "{{user.Nobody}}"]) {
      expect(filled(text), text).to.equal(undefined);
    }
  });

  it("match no user whose column is empty, for any test", () => {
    for (const test of [{ equals: "guest" }, { notequals: "guest" }, { contains: "g" }]) {
      for (const user of [{}, { Role: null }, { Role: undefined }]) {
        expect(isUserAllowedByRule({ user: { Role: test } }, user), JSON.stringify([test, user])).to.equal(false);
      }
    }
    expect(isUserAllowedByRule({ user: { Role: { notequals: "guest" } } }, { Role: "steward" })).to.equal(true);
  });

  it("compare a hashed column by hash, or reject the where", () => {
    expect(separateHashedConditions({ Email: "a", Password: "b" }, ["Password"])).to.deep.equal({
      whereWithoutHashed: { Email: "a" },
      hashedComparisons: [["Password", "b"]],
    });
    expect(separateHashedConditions({ Email: "a" }, ["Password"])).to.equal(null);
    expect(
      separateHashedConditions({ $and: [{ Email: "a" }, { $and: [{ Password: "b" }] }] }, ["Password"]),
    ).to.deep.equal({
      whereWithoutHashed: { $and: [{ Email: "a" }, { $and: [{}] }] },
      hashedComparisons: [["Password", "b"]],
    });
    for (const condition of [
      { $regex: "a" },
      { $ne: "a" },
      { $in: ["a"] },
      { $exists: true },
      null,
      "",
      { $eq: null },
    ]) {
      expect(() => separateHashedConditions({ "data.Password": condition }, ["Password"])).to.throw("is hashed");
    }
  });
});

describe("the requirements of an access rule", () => {
  const rule = (...require: NonNullable<EntryAccessRule["require"]>): EntryAccessRule[] => [
    { type: ["select"], allow: "all", require } as EntryAccessRule,
  ];

  it("are never met if two of its tests contradict each other, and are combined if they agree", () => {
    expect(grantOrNull(rule({ a: { equals: "x" } }, { a: { equals: "y" } }), null)).to.equal(null);
    expect(grantOrNull(rule({ a: { equals: "x", notequals: "z" } }, { a: { notequals: "y" } }), null)).to.equal(null);
    const both = grantOrNull(rule({ a: { equals: "x" } }, { a: { equals: "x", notequals: "y" } }), null);
    expect(both?.conditions).to.deep.equal({ a: { equals: "x", notequals: "y" } });
    const apart = grantOrNull(rule({ a: { equals: "x" } }, { b: { equals: "y" } }), null);
    expect(apart?.conditions).to.deep.equal({ a: { equals: "x" }, b: { equals: "y" } });
  });

  it("can be met by an ID if a column is tested, and not if it is only named", () => {
    const byId = (...require: NonNullable<EntryAccessRule["require"]>) =>
      maySelectEntryById(grantOrNull(rule(...require), null)!);
    expect(byId()).to.equal(true);
    expect(byId("a")).to.equal(false);
    expect(byId({ a: { equals: "x" } })).to.equal(true);
    expect(byId("a", { a: { equals: "x" } })).to.equal(true);
    expect(byId("b", { a: { equals: "x" } })).to.equal(false);
  });
});

describe("the requirements of a grant", () => {
  const rule = (more: Partial<EntryAccessRule>): EntryAccessRule[] => [{ type: ["select"], allow: "all", ...more }];
  const grant = (more: Partial<EntryAccessRule>) => grantOrNull(rule(more), null)!;

  it("are its columns, named in the error only if the caller may know them", () => {
    const shown = grant({ require: ["a", "b"], exclude: ["c"] });
    checkRequiredColumns(shown, new Set(["a", "b", "x"]), "where");
    const message = refusal("DATA_SOURCE_ACCESS_DENIED", () => checkRequiredColumns(shown, new Set(["a"]), "data"));
    expect(message).to.equal('the access rule requires the column "b"; add it to "data"');
    const hidden = grant({ require: ["a"], exclude: ["a"] });
    expect(refusal("DATA_SOURCE_ACCESS_DENIED", () => checkRequiredColumns(hidden, new Set(), "where"))).to.not.contain(
      'a"',
    );
  });

  it("are its values: a where with another value is rejected", () => {
    const tested = grant({ require: [{ a: { equals: "x" }, b: { notequals: "y" } }] });
    for (const where of [{ a: "x" }, { a: { $eq: "x" } }, { a: { $ne: "z" } }, { b: "y" }, { c: "z" }, {}, null])
      rejectWhereThatContradictsRule(tested, where);
    for (const where of [{ a: "z" }, { a: { $eq: "z" } }, { $and: [{ a: "x" }, { a: null }] }, { "data.a": ["x"] }])
      refusal("DATA_SOURCE_ACCESS_DENIED", () => rejectWhereThatContradictsRule(tested, where));
  });

  it("hide hashed columns, excluded ones, and all that are not included", () => {
    const { canSeeColumn: sees, filter } = createVisibleEntryScope(
      grant({ include: ["a", "b", "p"], exclude: ["b"] }),
      new Set(["p"]),
    );
    expect(["a", "b", "c", "p"].map(sees)).to.deep.equal([true, false, false, false]);
    expect(filter).to.equal(null);
    const open = createVisibleEntryScope(grant({ require: [{ a: { equals: 1 } }] }), new Set());
    expect(open.canSeeColumn("p")).to.equal(true);
    expect(open.filter).to.not.equal(null);
  });

  it("are those of the first rule that matches, is enabled and has the operation", () => {
    const rules: EntryAccessRule[] = [
      { type: ["delete"], allow: "all" },
      { type: ["select"], allow: "all", enabled: false },
      { type: ["select"], allow: "loggedIn" },
      { type: ["select", "insert"], allow: "all", enabled: true },
    ];
    expect([findDecidingRuleIndex(rules, "select", null), findDecidingRuleIndex(rules, "select", {})]).to.deep.equal([
      3, 2,
    ]);
    expect([findDecidingRuleIndex(rules, "update", {}), findDecidingRuleIndex(rules, "delete", null)]).to.deep.equal([
      -1, 0,
    ]);
    refusal("DATA_SOURCE_ACCESS_DENIED", () => findEntryPermissions(rules, "update", { isTrusted: false, user: {} }));
    const trusted = findEntryPermissions([], "update", { isTrusted: true });
    expect([trusted.mayAccessColumn("any"), trusted.requiredColumns, trusted.conditions]).to.deep.equal([true, [], {}]);
  });

  it("use the whole column that a key names", () => {
    expect(["a", "data.a", "data.a.b", "a.b", "data.", ""].map(getColumnNamedByWhereKey)).to.deep.equal([
      "a",
      "a",
      null,
      null,
      null,
      null,
    ]);
  });
});

describe("the tests of a rule as a where", () => {
  it("have each condition once, and none without a test", () => {
    const containsZ = { $iLike: new TextsOnlyOperand("z") };
    expect(convertColumnConditionsToWhere({})).to.equal(null);
    expect(convertColumnConditionsToWhere({ "a.b": { equals: "x", notequals: "y", contains: "z" } })).to.deep.equal({
      $and: [
        { "data.a\\.b": { $eq: "x", $not: { $type: "array" } } },
        { "data.a\\.b": { $ne: "y" } },
        { "data.a\\.b": containsZ },
      ],
    });
    expect(convertColumnConditionsToWhere({ a: { notequals: 1 } })).to.deep.equal({ $and: [{ "data.a": { $ne: 1 } }] });
    expect(convertColumnConditionsToWhere({ a: { contains: "z" } })).to.deep.equal({ $and: [{ "data.a": containsZ }] });
  });

  it("stay within the limits of a where, and name each column, for the maximum number of columns", () => {
    const columns = Array.from({ length: 50 }, (_, at) => `c${at}`);
    const where = convertColumnConditionsToWhere(Object.fromEntries(columns.map((name) => [name, { contains: "x" }])));
    const source = { documentSql: "e.doc", entryAlias: "e", canSeeColumn: () => true };
    expect(() => compileWhere(where, source, new SqlStatement())).to.not.throw();
    expect([...listWhereColumns(where)]).to.deep.equal(columns);
    // A copy as JSON loses the class TextsOnlyOperand, which limits the search to texts. So the copy must be rejected.
    const copy = () => compileWhere(JSON.parse(JSON.stringify(where)), source, new SqlStatement());
    refusal("REQUEST_INVALID", copy);
  });

  it("are rejected if they need a value that the user does not have", () => {
    const rules: EntryAccessRule[] = [
      { type: ["select"], allow: "all", require: [{ a: { equals: "{{user.Boss}}" } }] },
    ];
    const grant = (user: Record<string, unknown> | null) => () =>
      findEntryPermissions(rules, "select", { isTrusted: false, user });
    for (const user of [null, {}, { Boss: "" }]) refusal("DATA_SOURCE_ACCESS_DENIED", grant(user));
    expect(grant({ Boss: "x" })().conditions).to.deep.equal({ a: { equals: "x" } });
  });

  it("need only whole columns of what every found entry must match", () => {
    const demanded = (where: unknown) => [...listWhereColumns(where)].sort();
    expect(demanded({ a: 1, $and: [{ b: 2 }, { $and: [{ c: 3 }] }] })).to.deep.equal(["a", "b", "c"]);
    expect(demanded({ $or: [{ a: 1 }], $and: { b: 1 }, $filters: "c" })).to.deep.equal([]);
    expect(demanded({ $filters: [{ column: "a" }, { column: 5 }, "b", null] })).to.deep.equal(["a"]);
    expect(demanded({ "data.a": 1, "data.b.c": 2, id: 3 })).to.deep.equal(["a", "id"]);
    expect(demanded(null)).to.deep.equal([]);
  });
});
