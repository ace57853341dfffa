/** Tests the sign-in data that a page sends, without a database: which columns identify the entry, and which prove the user's identity. */
import { expect } from "chai";
import { parseSignInWhere } from "../../../src/rules/entries/sign-in.js";
import { refusal } from "../refusal.js";

const parse = (where: unknown) => parseSignInWhere(where, ["Password", "Pin"]);

describe("the where of a sign-in", () => {
  it("is split into columns that find the entry and columns that prove it; each name is counted by itself", () => {
    expect(parse({ Email: "a@example.com", Number: 7, Password: "p", Pin: 0 })).to.deep.equal({
      identifyingValues: { Email: "a@example.com", Number: 7 },
      secretValues: { Password: "p", Pin: 0 },
      attemptKeys: [{ Email: "a@example.com" }, { Number: 7 }],
    });
  });

  it("must name a hashed column and another one", () => {
    const message = refusal("DATA_SOURCE_ACCESS_DENIED", () => parse({ Email: "a", Number: 1 }));
    expect(message).to.equal("where must contain a hashed column, such as the password");
    expect(refusal("REQUEST_INVALID", () => parse({ Password: "p", Pin: 1 }))).to.contain(
      "a column that is not hashed",
    );
  });

  it("has only texts and numbers, so that no operator and no missing value is compared", () => {
    const long = "x".repeat(4_096);
    expect(parse({ Email: long, Password: "p" }).identifyingValues).to.deep.equal({ Email: long });
    for (const value of ["", `${long}x`, null, true, {}, { $ne: "" }, [], ["a"], Number.NaN, Infinity]) {
      for (const column of ["Email", "Password"]) {
        const where = { Email: "a", Password: "p", [column]: value };
        const message = refusal("REQUEST_INVALID", () => parse(where));
        expect(message, String(value)).to.contain(
          `where.${column} must be a number, or a text of 1 to 4096 characters (got `,
        );
      }
    }
    for (const value of ["a\u0000", "\ud800"])
      for (const column of ["Email", "Password"])
        expect(refusal("REQUEST_INVALID", () => parse({ Email: "a", Password: "p", [column]: value }))).to.equal(
          `where.${column} must not contain the character U+0000 or a lone surrogate`,
        );
    const secret = refusal("REQUEST_INVALID", () => parse({ Email: "a", Password: `${long}x` }));
    expect(secret).to.equal(
      "where.Password must be a number, or a text of 1 to 4096 characters (got a text of 4097 characters)",
    );
  });

  it("is an object of at most ten columns, whose long names are shortened in errors", () => {
    const columns = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`c${at}`, 1]));
    expect(Object.keys(parse({ ...columns(9), Password: "p" }).identifyingValues)).to.have.length(9);
    for (const where of [{ ...columns(10), Password: "p" }, [], null, "a", undefined])
      expect(refusal("REQUEST_INVALID", () => parse(where))).to.contain(
        "where must be an object with values for at most 10 columns",
      );
    const message = refusal("REQUEST_INVALID", () => parse({ ["n".repeat(70)]: null }));
    expect(message).to.contain(`where.${"n".repeat(60)} must`);
  });
});
