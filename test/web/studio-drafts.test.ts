/** Values of Studio's forms: what is typed becomes exactly the value that is stored, and nothing else changes. */
import { expect } from "chai";
import { duplicateOf, isHookValue } from "../../src/web/studio/data/draft-rows.js";

describe("Values of Studio's forms", () => {
  it("finds two rows that would become one field", () => {
    expect(duplicateOf(["Password", "Email", "Password"])).to.equal("Password");
    expect(duplicateOf(["Password", "", ""])).to.equal("");
    expect(duplicateOf(["Password", "password", ""])).to.equal(null);
  });

  it("shows a list of hooks as a form only if the form can show all of it", () => {
    const runOn = ["insert"];
    const shown = [
      { type: "operations", runOn, fields: { Password: ["hash"] } },
      { type: "email", runOn, to: [{ email: "{{Email}}" }] },
      { type: "sms", runOn, to: "{{Phone}}" },
    ];
    expect(isHookValue(shown)).to.equal(true);
    const others = [
      null,
      { type: "sms" },
      { type: "operations", runOn, fields: null },
      { type: "operations", runOn, fields: { Password: "hash" } },
      { type: "email", runOn, to: [null] },
      { type: "email", runOn, to: [] },
    ];
    for (const hook of others) expect(isHookValue([hook]), JSON.stringify(hook)).to.equal(false);
  });
});
