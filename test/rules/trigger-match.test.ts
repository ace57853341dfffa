import { expect } from "chai";
import fc from "fast-check";
import { LOG_EVENT_TYPES, matchesAnalyticsTrigger, matchesLogTrigger } from "../../src/rules/trigger-match.js";

describe("trigger match: log events", () => {
  it("needs the exact type", () => {
    expect(matchesLogTrigger({ type: "app.view" }, { type: "app.view" })).to.equal(true);
    for (const type of ["app.views", "app", "App.View", "", "app.update"]) {
      expect(matchesLogTrigger({ type: "app.view" }, { type }), type).to.equal(false);
    }
  });

  it("needs the data source that the filter names, and any without one", () => {
    const type = "dataSource.entry.create";
    expect(matchesLogTrigger({ type, dataSourceId: 5 }, { type, dataSourceId: 5 })).to.equal(true);
    expect(matchesLogTrigger({ type }, { type, dataSourceId: 5 })).to.equal(true);
    for (const dataSourceId of [6, null, undefined]) {
      expect(matchesLogTrigger({ type, dataSourceId: 5 }, { type, dataSourceId: dataSourceId as number })).to.equal(
        false,
      );
    }
  });

  it("has the 27 event types of the specification, each once", () => {
    expect(new Set(LOG_EVENT_TYPES).size).to.equal(27);
    expect(LOG_EVENT_TYPES).to.include.members([
      "sms.2fa",
      "mediaFile.create",
      "session.locale.updated",
      "ai.embeddings",
    ]);
  });
});

describe("trigger match: analytics events", () => {
  const type = "analytics.event";
  const matches = (filter: Record<string, unknown>, data: unknown) =>
    matchesAnalyticsTrigger({ type, data: filter }, { type, data });

  it("without data matches every event of the type, and no other", () => {
    expect(matchesAnalyticsTrigger({ type }, { type, data: { a: 1 } })).to.equal(true);
    expect(matchesAnalyticsTrigger({ type }, { type })).to.equal(true);
    expect(matchesAnalyticsTrigger({ type }, { type: "analytics.pageView" })).to.equal(false);
  });

  it("needs every field of the filter, at every level, and allows others", () => {
    expect(matches({ _pageId: 5 }, { _pageId: 5, _os: "Linux" })).to.equal(true);
    expect(matches({ a: { b: { c: 1 } } }, { a: { b: { c: 1, d: 2 }, e: 3 } })).to.equal(true);
    expect(matches({ a: { b: { c: 1 } } }, { a: { b: { c: 2 } } })).to.equal(false);
    expect(matches({ a: {} }, { a: "text" })).to.equal(false);
    expect(matches({}, {})).to.equal(true);
    expect(matches({}, undefined)).to.equal(false);
  });

  it("never converts a value to another type", () => {
    expect(matches({ a: 1 }, { a: "1" })).to.equal(false);
    expect(matches({ a: null }, {})).to.equal(false);
    expect(matches({ a: null }, { a: null })).to.equal(true);
    expect(matches({ a: [] }, { a: {} })).to.equal(false);
    expect(matches({ a: {} }, { a: [] })).to.equal(false);
  });

  it("needs arrays of equal length and elements", () => {
    expect(matches({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).to.equal(true);
    expect(matches({ a: [1] }, { a: [1, 2] })).to.equal(false);
    expect(matches({ a: [2, 1] }, { a: [1, 2] })).to.equal(false);
  });

  it("uses own fields only", () => {
    expect(matches(JSON.parse('{"toString":{}}'), {})).to.equal(false);
    expect(matches(JSON.parse('{"__proto__":{}}'), {})).to.equal(false);
    expect(matches(JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":1}}'))).to.equal(true);
  });

  it("matches any data against itself", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ noUnicodeString: false })), (data) => {
        expect(matches(JSON.parse(JSON.stringify(data)), JSON.parse(JSON.stringify(data)))).to.equal(true);
      }),
    );
  });
});
