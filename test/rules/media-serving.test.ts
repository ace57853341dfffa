/** Tests ranges and ETags of a file's contents, by RFC 9110. */
import { expect } from "chai";
import {
  containsEntityTag,
  createContentDisposition,
  getMediaResponseHeaders,
  parseRangeHeader,
} from "../../src/rules/media-serving.js";

describe("the range of a request for contents", () => {
  for (const [header, bytes, expected] of [
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
    ["bytes=-000", 10, "none"],
    ["bytes=-1", 0, "none"],
    ["bytes=-", 10, null],
    ["bytes=1-2,4-5", 10, null],
    ["lines=1-2", 10, null],
    [" bytes=1-2 ", 10, { start: 1, end: 2 }],
  ] as const) {
    it(`${header} of ${bytes} bytes is ${JSON.stringify(expected)}`, () => {
      expect(parseRangeHeader(header, bytes)).to.deep.equal(expected);
    });
  }

  it("applies with a tag in the list, weak or not", () => {
    expect(['"a"', 'W/"a"', '"b", "a"', "*"].map((header) => containsEntityTag(header, '"a"'))).to.deep.equal(
      Array(4).fill(true),
    );
    expect([undefined, '"b"', 'a"', '"a'].map((header) => containsEntityTag(header, '"a"'))).to.deep.equal(
      Array(4).fill(false),
    );
  });
});

describe("contents as they are sent", () => {
  for (const [type, sent, disposition] of [
    ["image/png", "image/png", "inline"],
    ["audio/mpeg", "audio/mpeg", "inline"],
    ["audio/ogg; codecs=opus", "audio/ogg; codecs=opus", "inline"],
    ["text/plain", "text/plain; charset=utf-8", "inline"],
    ["image/svg+xml", "image/svg+xml", "attachment"],
    ["application/zip", "application/zip", "attachment"],
    ["text/html", "application/octet-stream", "attachment"],
    ["text/css", "application/octet-stream", "attachment"],
    ["application/pdf", "application/octet-stream", "attachment"],
    ["application/xhtml+xml", "application/octet-stream", "attachment"],
    ["application/atom+xml", "application/octet-stream", "attachment"],
    ["application/ld+json", "application/octet-stream", "attachment"],
    ["application/x-javascript", "application/octet-stream", "attachment"],
    ["multipart/related", "application/octet-stream", "attachment"],
  ] as const) {
    it(`of ${type} are ${sent}, ${disposition}`, () => {
      expect(getMediaResponseHeaders(type, true)).to.deep.equal({ contentType: sent, disposition });
    });
  }

  it("are saved if a picture could not be decoded, and shown if something else could not", () => {
    expect(getMediaResponseHeaders("image/png", false).disposition).to.equal("attachment");
    expect(getMediaResponseHeaders("video/mp4", false).disposition).to.equal("inline");
  });

  it("have their full name and an ASCII form", () => {
    expect(createContentDisposition("attachment", `a"b\\c%ü('*).txt`)).to.equal(
      `attachment; filename="a_b_c__('*).txt"; filename*=UTF-8''a%22b%5Cc%25%C3%BC%28%27%2A%29.txt`,
    );
  });
});
