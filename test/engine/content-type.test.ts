/** Tests how the service detects the type of an upload from its bytes. Uploads are untrusted, so no content may make the detection slow. */
import { expect } from "chai";
import { detectContentType } from "../../src/engine/content-type.js";

const typeOf = (text: string) => detectContentType(Buffer.from(text));

describe("the type of a text", () => {
  it("is that of its first element, after comments, declarations and space", async () => {
    for (const [text, type] of [
      ["<!-- a --> \n<!----><script>", "text/html"],
      ["<!--><script>", "text/html"],
      ["<!---><img src=x>", "text/html"],
      ['<?xml version="1.0"?><html>', "text/html"],
      ["<!DOCTYPE html>", "text/html"],
      ["<BODY", "text/html"],
      ['<?xml version="1.0"?><!-- x --><!DOCTYPE svg PUBLIC "x"><svg>', "image/svg+xml"],
      ["<s:svg x=1>", "image/svg+xml"],
      ['<?xml version="1.0"?><feed>', "application/xml"],
      ["<!-- a <script>", "text/plain"],
      ["a <script>", "text/plain"],
      ["<bold>", "text/plain"],
    ] as const) {
      expect(await typeOf(text), text).to.equal(type);
    }
  });

  it("is found after thousands of comments, declarations and lines", async () => {
    for (const part of ["<!---->", "<!-- --><?xml?>", "<!doctype svg>", " \n", "<?x?>", "<!--"]) {
      expect(await typeOf(part.repeat(20_000 / part.length)), part).to.be.oneOf(["text/plain", "application/xml"]);
    }
  });
});
