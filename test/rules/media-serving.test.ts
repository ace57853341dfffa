/** Ranges and tags of a file's contents, as RFC 9110 has them. */
import { expect } from "chai";
import { namesTag, rangeIn } from "../../src/rules/media-serving.js";

describe("the range of a request for contents", () => {
  for (const [header, bytes, wanted] of [
    [undefined, 10, null],
    ["bytes=5-5", 10, { start: 5, end: 5 }],
    ["bytes=0-0", 1, { start: 0, end: 0 }],
    ["bytes=0-", 10, { start: 0, end: 9 }],
    ["bytes=3-7", 10, { start: 3, end: 7 }],
    ["bytes=9-20", 10, { start: 9, end: 9 }],
    ["bytes=10-20", 10, "none"],
    ["bytes=0-0", 0, "none"],
    ["bytes=6-5", 10, null],
    ["bytes=-3", 10, { start: 7, end: 9 }],
    ["bytes=-30", 10, { start: 0, end: 9 }],
    ["bytes=-0", 10, "none"],
    ["bytes=-1", 0, "none"],
    ["bytes=-", 10, null],
    ["bytes=1-2,4-5", 10, null],
    ["lines=1-2", 10, null],
    [" bytes=1-2 ", 10, { start: 1, end: 2 }],
  ] as const) {
    it(`${header} of ${bytes} bytes is ${JSON.stringify(wanted)}`, () => {
      expect(rangeIn(header, bytes)).to.deep.equal(wanted);
    });
  }

  it("counts for a tag that is in the list, weak or not", () => {
    expect(['"a"', 'W/"a"', '"b", "a"', "*"].map((header) => namesTag(header, '"a"'))).to.deep.equal(
      Array(4).fill(true),
    );
    expect([undefined, '"b"', 'a"', '"a'].map((header) => namesTag(header, '"a"'))).to.deep.equal(Array(4).fill(false));
  });
});
