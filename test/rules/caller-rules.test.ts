/** Tests the callers and the column conditions of access rules: valid values, and the field that each fault names. */
import { expect } from "chai";
import {
  checkCallerRule,
  checkColumnConditions,
  checkIsColumnName,
  fillConditionPlaceholders,
  isUserAllowedByRule,
  meetsColumnConditions,
} from "../../src/rules/caller-rules.js";
import { parseAccessRules } from "../../src/rules/entries/access-rules.js";
import { refusal } from "./refusal.js";

describe("the tests of columns in a rule", () => {
  it("are 1 to 50 columns, each with at least one known test", () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`c${at}`, { equals: 1 }]));
    checkColumnConditions(many(1), "t");
    checkColumnConditions(many(50), "t");
    for (const value of [{}, many(51), [], null, "a"])
      expect(refusal("REQUEST_INVALID", () => checkColumnConditions(value, "t"))).to.contain(
        "t must be an object with conditions for 1 to 50 columns",
      );
    for (const test of [{}, null, "x", []])
      expect(refusal("REQUEST_INVALID", () => checkColumnConditions({ a: test }, "t"))).to.contain(
        't.a must be an object with "equals", "notequals" or "contains"',
      );
    expect(refusal("REQUEST_INVALID", () => checkColumnConditions({ a: { equal: 1 } }, "t"))).to.contain("t.a.equal");
  });

  it("compare with texts, numbers and booleans; contains needs a text", () => {
    const long = "x".repeat(1_000);
    for (const value of [0, -1.5, true, false, "a", long]) {
      checkColumnConditions({ a: { equals: value, notequals: value } }, "t");
      if (typeof value === "string") checkColumnConditions({ a: { contains: value } }, "t");
      else
        expect(refusal("REQUEST_INVALID", () => checkColumnConditions({ a: { contains: value } }, "t"))).to.match(
          /^t\.a\.contains must be a text of 1 to 1000 characters \(got /,
        );
    }
    for (const value of ["", `${long}x`, null, {}, ["a"], Number.NaN, Infinity])
      expect(refusal("REQUEST_INVALID", () => checkColumnConditions({ a: { equals: value } }, "t"))).to.match(
        /^t\.a\.equals must be a text of 1 to 1000 characters, a number or a boolean \(got /,
      );
    expect(refusal("REQUEST_INVALID", () => checkColumnConditions({ a: { equals: "\u0000" } }, "t"))).to.match(
      /^t\.a\.equals must not contain the character U\+0000 or a lone surrogate \(got /,
    );
  });

  it("name columns of 1 to 255 characters", () => {
    checkIsColumnName("x".repeat(255), "c");
    for (const name of ["", "x".repeat(256), 5, null])
      expect(refusal("REQUEST_INVALID", () => checkIsColumnName(name, "c"))).to.contain(
        "c must be the name of a column",
      );
    expect(refusal("REQUEST_INVALID", () => checkIsColumnName("\u0000", "c"))).to.contain(
      "c must not contain the character U+0000 or a lone surrogate",
    );
    expect(refusal("REQUEST_INVALID", () => checkColumnConditions({ "": { equals: 1 } }, "t"))).to.contain(
      "t must be the name",
    );
  });
});

describe("callers that a rule allows", () => {
  it("are all, signed-in users, or users by their columns, and nothing else", () => {
    for (const allow of ["all", "loggedIn", { user: { Role: { equals: "admin" } } }]) checkCallerRule(allow, "a");
    for (const allow of ["everyone", null, undefined, {}, [], true])
      expect(refusal("REQUEST_INVALID", () => checkCallerRule(allow, "a"))).to.contain(
        'a must be "all", "loggedIn" or',
      );
    expect(refusal("REQUEST_INVALID", () => checkCallerRule({ user: {} }, "a"))).to.contain("a.user must be");
    const unknown = () => checkCallerRule({ user: { a: { equals: 1 } }, users: 1 }, "a");
    expect(refusal("REQUEST_INVALID", unknown)).to.contain("a.users");
  });

  it("exclude everyone who is not signed in, except with all", () => {
    expect([
      isUserAllowedByRule("all", null),
      isUserAllowedByRule("loggedIn", null),
      isUserAllowedByRule({ user: { a: { equals: 1 } } }, null),
    ]).to.deep.equal([true, false, false]);
    expect([isUserAllowedByRule("all", {}), isUserAllowedByRule("loggedIn", {})]).to.deep.equal([true, true]);
  });

  it("are compared with their own columns filled into the rule", () => {
    const rule = { user: { Team: { equals: "{{user.Home}}" } } };
    expect(isUserAllowedByRule(rule, { Team: "a", Home: "a" })).to.equal(true);
    expect(isUserAllowedByRule(rule, { Team: "a", Home: "b" })).to.equal(false);
    expect(isUserAllowedByRule(rule, { Team: "a" })).to.equal(false);
  });
});

describe("tests with the user's columns", () => {
  it("keep numbers and booleans unchanged, and use a text for contains", () => {
    const user = { n: 5, yes: true, empty: "", list: ["x"] };
    expect(fillConditionPlaceholders({ a: { equals: "{{user.n}}", contains: "{{user.n}}" } }, user)).to.deep.equal({
      a: { equals: 5, contains: "5" },
    });
    expect(fillConditionPlaceholders({ a: { equals: "{{user.yes}}", notequals: 7 } }, user)).to.deep.equal({
      a: { equals: true, notequals: 7 },
    });
    for (const column of ["empty", "list", "missing", "toString"])
      expect(fillConditionPlaceholders({ a: { equals: `{{user.${column}}}` } }, user), column).to.equal(null);
    expect(fillConditionPlaceholders({ a: { equals: "{{user.n}}" } }, null)).to.equal(null);
    expect(fillConditionPlaceholders({ a: { equals: "of {{user.missing}}" } }, user)).to.equal(null);
    expect(fillConditionPlaceholders({ a: { equals: "plain" } }, null)).to.deep.equal({ a: { equals: "plain" } });
  });

  it("read a column in brackets of one character or more, and brackets alone as a name", () => {
    const filled = (text: string, user: object) =>
      fillConditionPlaceholders({ a: { equals: text } }, user as never)?.a?.equals;
    expect(filled("{{user.[b]}}", { b: "x", "[b]": "y" })).to.equal("x");
    expect(filled("{{user.[]}}", { "[]": "x" })).to.equal("x");
    expect(filled("a{{user.b}}c{{user.b}}", { b: "-" })).to.equal("a-c-");
  });

  it("allow no user if a placeholder is incomplete or nested", () => {
    for (const text of ["{{user.b", "{{user.b}", "a {{ user.b} }", "{{user.}}", "{{user.{{user.b}}}}"])
      expect(fillConditionPlaceholders({ a: { equals: text } }, { b: "x" }), text).to.equal(null);
  });

  it("are parsed once, however often they are filled", () => {
    const { matchAll } = String.prototype;
    let parses = 0;
    String.prototype.matchAll = function (this: string, pattern) {
      parses += 1;
      return matchAll.call(this, pattern);
    };
    try {
      for (const b of ["x", "y"]) fillConditionPlaceholders({ a: { equals: "parsed once {{user.b}}" } }, { b });
    } finally {
      String.prototype.matchAll = matchAll;
    }
    expect(parses).to.equal(1);
  });

  it("stay right for more templates than are cached", () => {
    for (let n = 0; n < 2_050; n += 1)
      expect(fillConditionPlaceholders({ a: { equals: `${n} {{user.b}}` } }, { b: "x" })).to.deep.equal({
        a: { equals: `${n} x` },
      });
    expect(fillConditionPlaceholders({ a: { equals: "0 {{user.b}}" } }, { b: "y" })).to.deep.equal({
      a: { equals: "0 y" },
    });
  });

  it("must all pass", () => {
    const data = { a: "Some Text", n: 3, list: ["One", ["Two"]] };
    for (const [tests, holds] of [
      [{ a: { equals: "Some Text", contains: "some" }, n: { equals: 3 } }, true],
      [{ a: { equals: "Some Text" }, n: { equals: 4 } }, false],
      [{ a: { equals: "Some Text", notequals: "Some Text" } }, false],
      [{ a: { equals: "Some Text", contains: "other" } }, false],
      [{ n: { contains: "3" } }, false],
      [{ list: { contains: "one" } }, true],
      [{ list: { contains: "two" } }, false],
      [{ list: { notequals: "One" } }, false],
      [{ missing: { notequals: "x" } }, true],
      [{ missing: { equals: "x" } }, false],
    ] as const)
      expect(meetsColumnConditions(data, tests), JSON.stringify(tests)).to.equal(holds);
  });
});

describe("the form of access rules", () => {
  const RULE = { type: ["select"], allow: "all" };

  it("is a list of at most 100; none for null", () => {
    expect([parseAccessRules(undefined), parseAccessRules(null)]).to.deep.equal([[], []]);
    expect(parseAccessRules(Array(100).fill(RULE))).to.have.length(100);
    for (const value of [Array(101).fill(RULE), {}, "all"])
      expect(refusal("REQUEST_INVALID", () => parseAccessRules(value))).to.contain(
        "accessRules must be an array of at most 100",
      );
  });

  it("is rejected by the path of the invalid field", () => {
    for (const [rule, field] of [
      [null, "accessRules[0] must be an object"],
      [
        { ...RULE, type: [] },
        "accessRules[0].type must be an array with one or more of select, insert, update, delete",
      ],
      [
        { ...RULE, type: ["select", "read"] },
        'accessRules[0].type[1] must be one of select, insert, update, delete (got "read")',
      ],
      [{ ...RULE, type: "select" }, "accessRules[0].type"],
      [{ ...RULE, allow: "any" }, "accessRules[0].allow"],
      [{ ...RULE, enabled: 1 }, "accessRules[0].enabled must be true or false"],
      [{ ...RULE, include: "a" }, "accessRules[0].include must be an array of at most 500 column names"],
      [{ ...RULE, exclude: Array(501).fill("a") }, "accessRules[0].exclude"],
      [{ ...RULE, exclude: ["a", ""] }, "accessRules[0].exclude[1]"],
      [
        { ...RULE, require: "a" },
        "accessRules[0].require must be an array of at most 500 items, each a column name or an object with conditions on columns",
      ],
      [{ ...RULE, require: Array(501).fill("a") }, "accessRules[0].require"],
      [{ ...RULE, require: ["a", ""] }, "accessRules[0].require[1]"],
      [{ ...RULE, require: ["a", { b: {} }] }, "accessRules[0].require[1].b"],
    ] as const)
      expect(
        refusal("REQUEST_INVALID", () => parseAccessRules([rule])),
        JSON.stringify(rule),
      ).to.contain(field);
    const validRule = {
      ...RULE,
      enabled: false,
      include: Array(500).fill("a"),
      exclude: [],
      require: ["a", { b: { equals: 1 } }],
    };
    expect(parseAccessRules([validRule])).to.deep.equal([validRule]);
    const { require } = parseAccessRules([{ ...RULE, require: Array(500).fill("a") }])[0]!;
    expect(require).to.have.length(500);
  });
});
