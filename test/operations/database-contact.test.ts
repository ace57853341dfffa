import { expect } from "chai";
import { DatabaseContact } from "../../src/operations/runs/lease.js";

const STEADY_MS = 12_000;

describe("contact with the database", () => {
  let now: number;
  const contactAt = (...times: number[]) => {
    now = 0;
    const contact = new DatabaseContact(STEADY_MS, () => now);
    for (const at of times) {
      now = at;
      contact.reached();
    }
    return contact;
  };

  it("is steady after a whole lease of answers, and not before", () => {
    const contact = contactAt(0, 3_000, 6_000, 9_000);
    now = 11_999;
    expect(contact.isSteady()).to.equal(false);
    now = 12_000;
    expect(contact.isSteady()).to.equal(true);
  });

  it("is not steady before the first answer", () => {
    expect(contactAt().isSteady()).to.equal(false);
  });

  it("starts over after the database could not be reached", () => {
    const contact = contactAt(0, 3_000, 6_000, 9_000, 12_000);
    contact.lost();
    expect(contact.isSteady()).to.equal(false);
    now = 13_000;
    contact.reached();
    expect(contact.isSteady()).to.equal(false);
    for (now = 16_000; now < 25_000; now += 3_000) contact.reached();
    expect(contact.isSteady()).to.equal(true);
  });

  it("starts over after a silence in which no attempt failed", () => {
    const contact = contactAt(0, 3_000, 6_000, 9_000, 12_000);
    now = 40_000;
    expect(contact.isSteady()).to.equal(false);
    contact.reached();
    expect(contact.isSteady()).to.equal(false);
  });
});
