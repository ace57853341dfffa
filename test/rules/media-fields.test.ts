/** Tests names of uploaded files: invalid characters are removed, and long names are cut before their extension. */
import { expect } from "chai";
import { MEDIA_NAME_MAX_CHARACTERS, parseMediaName, toValidUploadName } from "../../src/rules/media-fields.js";

describe("the name of an uploaded file", () => {
  it("stays unchanged up to the longest name, and keeps its extension beyond", () => {
    const stem = (length: number) => "n".repeat(length);
    expect(toValidUploadName(`${stem(251)}.pdf`)).to.equal(`${stem(251)}.pdf`);
    expect(toValidUploadName(`${stem(300)}.pdf`)).to.equal(`${stem(251)}.pdf`);
    expect(toValidUploadName(`${stem(300)}.tar.gz`)).to.equal(`${stem(252)}.gz`);
    expect(toValidUploadName(stem(300))).to.equal(stem(255));
    expect(toValidUploadName(`${stem(10)}.${"e".repeat(300)}`)).to.equal(`${stem(10)}.${"e".repeat(244)}`);
    expect(toValidUploadName(`.${stem(300)}`)).to.equal(`.${stem(254)}`);
  });

  it("is never cut within a character, and is always a valid name", () => {
    for (let length = 240; length < 262; length += 1) {
      for (const end of [".jpeg", ""]) {
        const name = toValidUploadName(`${"x".repeat(length)}${"😀".repeat(10)}${end}`);
        expect(name.isWellFormed(), `${length}`).to.equal(true);
        expect(name.length).to.be.at.most(MEDIA_NAME_MAX_CHARACTERS);
        expect(name.endsWith(end)).to.equal(true);
        expect(parseMediaName(name)).to.equal(name);
      }
    }
  });
});
