import { expect } from "chai";
import fc from "fast-check";
import { findJsonFault, readJsonFieldText } from "../../src/rules/json-scan.js";
import { JsonText, serializeJson } from "../../src/rules/json-text.js";
import { caseCount } from "../harness/samples.js";

const DEPTH = 1_000;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Generates JSON with at most one changed character, as a malicious page could send it. */
const nearlyJson = fc
  .tuple(
    fc.json({ maxDepth: 6 }),
    fc.nat(),
    fc.constantFrom("", "{", "}", "[", "]", ",", ":", '"', "\\", "0", "-", "e", ".", " ", "\n", "\0", "u", "t"),
  )
  .map(([text, at, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + 1));

describe("JSON text that is read without parsing", () => {
  it("is valid exactly if JSON.parse accepts it", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json({ maxDepth: 6 }), nearlyJson, fc.string()), (text) => {
        expect(findJsonFault(text, DEPTH) === null, text).to.equal(isJson(text));
      }),
      { numRuns: caseCount(20_000) },
    );
  });

  it("can have spaces anywhere, numbers of every form and every escape", () => {
    for (const text of [
      ' [ 1 , -0.5e+3 , { "a" : null } ] ',
      '"\\u00e9\\n\\/\\"\\\\"',
      "-0",
      "1E9",
      "true",
      '{"":{}}',
      "[[],{}]",
    ]) {
      expect(findJsonFault(text, DEPTH), text).to.equal(null);
    }
    for (const text of [
      "",
      " ",
      "01",
      "1.",
      ".5",
      "+1",
      "'a'",
      "[1,]",
      "{,}",
      '{"a"}',
      '"\\x"',
      '"\\u12g4"',
      '"\t"',
      "nul",
      "[}",
      "{]",
      "1 2",
      "[1]]",
    ]) {
      expect(findJsonFault(text, DEPTH), text).to.equal("invalid");
    }
  });

  it("returns its depth, also with brackets that never close", () => {
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    expect(findJsonFault(nested(500), 500)).to.equal(null);
    expect(findJsonFault(nested(501), 500)).to.equal("deep");
    expect(findJsonFault('{"a":'.repeat(3_000_000), 500)).to.equal("deep");
    expect(findJsonFault(`[${"[],".repeat(1_000)}[]]`, 2)).to.equal(null);
  });

  it("returns the text of a member unchanged, the last one of its name, and not one within another", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const text = JSON.stringify(object, null, 1);
        for (const [key, value] of Object.entries(object)) {
          expect(JSON.parse(readJsonFieldText(text, key)!)).to.deep.equal(JSON.parse(JSON.stringify(value)));
        }
      }),
    );
    expect(readJsonFieldText('{"a":{"b":1},"b" : [ 1.50 ] }', "b")).to.equal("[ 1.50 ]");
    expect(readJsonFieldText('{"b":1,"\\u0062":2}', "b")).to.equal("2");
    expect(readJsonFieldText('{"a":{"b":1}}', "b")).to.equal(undefined);
    expect(readJsonFieldText("[1]", "b")).to.equal(undefined);
    expect(readJsonFieldText("", "b")).to.equal(undefined);
  });
});

describe("a response that contains JSON text", () => {
  it("is the same as with parsed values, each text unchanged", () => {
    const text = '{"b":1.50,"a":{"2":1,"1":[ ]},"b":"twice"}';
    const body = { first: new JsonText(text), list: [new JsonText("null"), { deep: new JsonText('"x"') }], last: 'é"' };
    expect(serializeJson(body)).to.equal(`{"first":${text},"list":[null,{"deep":"x"}],"last":"é\\""}`);
    expect(serializeJson({ plain: [1, "two"] })).to.equal('{"plain":[1,"two"]}');
  });

  it("never replaces a placeholder that is part of a text", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.array(fc.uuid()), (values, words) => {
        const texts = values.map((value) => new JsonText(JSON.stringify(value)));
        const body = { words, texts, again: words.map((word) => ({ [word]: `"${word}"` })) };
        const received = JSON.parse(serializeJson(body));
        expect(received.texts).to.deep.equal(JSON.parse(JSON.stringify(values)));
        expect(received.words).to.deep.equal(words);
      }),
    );
  });

  it("contains the value itself if it is serialized otherwise", () => {
    expect(JSON.stringify({ data: new JsonText('{"a": 1}') })).to.equal('{"data":{"a":1}}');
  });
});
