/** The sender in an app's mail settings: one address, perhaps with a name. */
import { expect } from "chai";
import { parseSender } from "../../src/rules/message-destination.js";

describe("a sender", () => {
  it("is an address, alone or in brackets after a name", () => {
    for (const [text, from, fromName] of [
      ["ann@example.com", "ann@example.com", null],
      [" ann@example.com ", "ann@example.com", null],
      ["Ann <ann@example.com>", "ann@example.com", "Ann"],
      ['"Ann, of the Shop" <ann@example.com>', "ann@example.com", "Ann, of the Shop"],
      ["<ann@example.com>", "ann@example.com", null],
    ] as const) {
      expect(parseSender(text), text).to.deep.equal({ from, fromName });
    }
  });

  it("is nothing else, and no line break gets through", () => {
    for (const text of [
      "",
      "Ann",
      "Ann ann@example.com",
      "a@example.com, b@example.com",
      "Ann <a@example.com> <b@example.com>",
      "Shop: ann@example.com;",
      "Ann\r\nBcc: x@example.com <ann@example.com>",
      "Ann <ann@-example.com>",
      "Ann <ann@example.com> x",
      `${" ".repeat(4_000)}<`,
      `${"(".repeat(900)}ann@example.com`,
    ]) {
      expect(parseSender(text), text).to.equal(null);
    }
  });
});
