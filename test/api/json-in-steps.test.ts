/** Tests the parser that parses a large JSON body in parts: the result equals that of JSON.parse, and no part takes long. */
import { expect } from "chai";
import { parseJsonInSteps } from "../../src/api/json-in-steps.js";
import type { ActionError } from "../../src/errors.js";
import { caseCount } from "../harness/samples.js";

const runAtOnce = async <T>(step: () => T) => step();
const parse = (text: string) => parseJsonInSteps(Buffer.from(text), runAtOnce);
const statusOf = (text: string) =>
  parse(text).then(
    () => "parsed",
    (error: ActionError) => error.status,
  );

/** Generates pseudo-random numbers. The same seed gives the same numbers. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    yield state / 2 ** 31;
  }
}

function sampleValue(next: () => number, depth: number): unknown {
  const kind = Math.floor(next() * (depth > 3 ? 5 : 8));
  if (kind === 0) return null;
  if (kind === 1) return next() < 0.5;
  if (kind === 2) return (next() - 0.5) * 1e6;
  if (kind < 5) return ['"', "\\", "[1,2]", "}{", ",", "é😀\u2028", "", "x".repeat(50)][Math.floor(next() * 8)];
  const length = Math.floor(next() * 5);
  if (kind < 7) return Array.from({ length }, () => sampleValue(next, depth + 1));
  return Object.fromEntries(Array.from({ length }, (_, n) => [`k"${n}`, sampleValue(next, depth + 1)]));
}

describe("a JSON body that is parsed in parts", () => {
  it("gives the same value as JSON.parse, with spaces in any place and lists of any length", async () => {
    const source = numbers(7);
    const next = () => source.next().value as number;
    for (let round = 0; round < caseCount(200); round += 1) {
      const long = Array.from({ length: round % 10 === 0 ? 20_000 : round % 7 }, () => sampleValue(next, 2));
      const body = { a: sampleValue(next, 0), entries: long, "": sampleValue(next, 0), last: [sampleValue(next, 0)] };
      const text = JSON.stringify(body, null, round % 3);
      expect(JSON.stringify(await parse(` ${text}\n`))).to.equal(JSON.stringify(JSON.parse(text)));
    }
  });

  it("keeps a key __proto__ as data, and the last value of a repeated key", async () => {
    const body = await parse('{"__proto__": {"x": 1}, "a": [1], "a": [2]}');
    expect(Object.keys(body)).to.deep.equal(["__proto__", "a"]);
    expect(body["a"]).to.deep.equal([2]);
  });

  it("is rejected if a number in it is too large, in any place", async () => {
    for (const text of ['{"a": 1e309}', '{"a": [0, -1e400]}', '{"a": {"b": [1e+999]}}', `{"a": ${"9".repeat(400)}}`])
      expect(await statusOf(text), text.slice(0, 40)).to.equal("REQUEST_INVALID");
    expect(await parse('{"a": [1.7e308], "b": "1e999"}')).to.deep.equal({ a: [1.7e308], b: "1e999" });
  });

  it("is rejected whenever JSON.parse rejects it", async () => {
    const valid = '{"a":[1,{"b":"c]"},[]],"d":-1.5e3,"e":[],"f":{"g":null}}';
    const long = `{"a":[${"[0],".repeat(40_000)}[0]]}`;
    const faults = [
      "",
      "[]",
      "5",
      '"a"',
      "null",
      `${valid}x`,
      `${valid}${valid}`,
      '{"a":[1,]}',
      '{"a":[,1]}',
      '{"a":[,]}',
    ];
    faults.push(
      '{"a":1,}',
      '{,"a":1}',
      '{"a"}',
      '{"a":}',
      "{a:1}",
      '{"a":[1 2]}',
      '{"a":1 "b":2}',
      '{"a":[1}}',
      "{'a':1}",
      '{"a":01}',
    );
    faults.push(
      '\ufeff{"a":1}',
      '{"a":["\n"]}',
      long.replace("]]}", "],]}"),
      long.replace("]]}", "]x]}"),
      long.slice(0, -1),
    );
    for (const text of faults) {
      expect(await statusOf(text), text.slice(0, 40)).to.equal("REQUEST_INVALID");
    }
    for (let at = 0; at < valid.length; at += 1) {
      const cut = valid.slice(0, at);
      expect(await statusOf(cut), cut).to.equal("REQUEST_INVALID");
    }
    expect(await statusOf(valid)).to.equal("parsed");
    expect(await statusOf(long)).to.equal("parsed");
  });

  it("is rejected if it is not UTF-8, or if one value is larger than an entry may be", async () => {
    const invalidUtf8 = Buffer.from('{"a":["xx"]}');
    invalidUtf8[7] = 0xff;
    expect(await parseJsonInSteps(invalidUtf8, runAtOnce).catch((error: ActionError) => error.status)).to.equal(
      "REQUEST_INVALID",
    );
    expect(await statusOf(`{"a":["${"x".repeat(3 * 1024 * 1024)}"]}`)).to.equal("PAYLOAD_TOO_LARGE");
  });

  it("is parsed in steps of limited size", async () => {
    const entries = Array.from({ length: 50_000 }, (_, n) => ({ data: { n, text: "x".repeat(100) } }));
    const bytes = Buffer.from(JSON.stringify({ entries }));
    let steps = 0;
    await parseJsonInSteps(bytes, async (step) => {
      steps += 1;
      return step();
    });
    expect(steps).to.be.within(bytes.length / (160 * 1024), bytes.length / (100 * 1024));
  });
});
