import { expect } from "chai";
import { decodeDigitLayers } from "../../src/engine/secret-scan/digits.js";
import { decodeEscapesOnce } from "../../src/engine/secret-scan/escapes.js";
import type { DecodedLayer } from "../../src/engine/secret-scan/layers.js";
import { ENTIRE_TEXT_SPANS } from "../../src/engine/secret-scan/spans.js";
import { viewAsInt32Words, viewAsUint16Numbers } from "../../src/engine/secret-scan/words.js";

const SECRET = "a secret of several words";
/** Base64 digits before the scanned bytes in the same buffer. The scan must not read them. */
const LEADING_DIGITS = "zzzz";

function layerOf(text: string, offset: number): DecodedLayer {
  const bytes = new TextEncoder().encode(LEADING_DIGITS.slice(0, offset) + text).subarray(offset);
  return { bytes, textIndexes: null, newSpans: ENTIRE_TEXT_SPANS, changedSpans: [] };
}

const textOf = ({ bytes }: Pick<DecodedLayer, "bytes">) => Buffer.from(bytes).toString("latin1");

describe("the secret scan, for bytes at any offset in memory", () => {
  for (const offset of [0, 1, 2, 3]) {
    it(`reads texts at offset ${offset} with one, two and four bytes in the same way`, () => {
      const { bytes } = layerOf("0123456789", offset);
      expect(textOf({ bytes: new Uint8Array(new Int32Array(viewAsInt32Words(bytes)).buffer) })).to.equal("01234567");
      expect(textOf({ bytes: new Uint8Array(new Uint16Array(viewAsUint16Numbers(bytes)).buffer) })).to.equal(
        "0123456789",
      );
    });

    for (const encoding of ["base64", "hex"] as const) {
      it(`decodes ${encoding} at offset ${offset}`, () => {
        const layer = layerOf(`${Buffer.from(SECRET.repeat(4)).toString(encoding)} and more`, offset);
        const found: boolean[] = [];
        // The scan uses the memory of a decoded layer again for the next layer. So the test reads each layer at once.
        for (const decoded of decodeDigitLayers(layer, ENTIRE_TEXT_SPANS, SECRET.length))
          found.push(textOf(decoded).includes(SECRET));
        expect(found).to.include(true);
      });
    }

    it(`finds the escapes of a text at offset ${offset}`, () => {
      const unescaped = decodeEscapesOnce(
        layerOf(`plain text of some length, then ${encodeURIComponent(SECRET)}`, offset),
      );
      expect(textOf(unescaped!)).to.include(SECRET);
    });
  }
});
