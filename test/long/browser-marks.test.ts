/**
 * Checks that no text (mark) that a run writes to an object of a page is visible to the next run. Marks one object at a time. If the mark
 * ends the page, marks the members of the object instead. test/attacks/browser-marks.test.ts marks many objects at once.
 */
import { expect } from "chai";
import { EVALUATION_MODES } from "../../src/engine/browser/run.js";
import { MarkedPage } from "../attacks/marked-page.js";

for (const mode of EVALUATION_MODES) {
  describe(`each trace that a run leaves in its own sandbox, mode ${mode}`, () => {
    let page: MarkedPage;

    before(async () => {
      page = await MarkedPage.open(mode);
    });
    after(() => page.stop());

    /**
     * Returns the marks that do not end the page. Adds a text to `left` for each of them that the next run sees. If the marks end the page,
     * tests each half of them.
     */
    async function findSeenMarks(marks: string[], left: string[]): Promise<string[]> {
      const found = await page.findMarksLeftBy(marks);
      if (found !== null) {
        left.push(...found.map((foundPath) => `${marks.join(" ")}: ${foundPath}`));
        return marks;
      }
      const [first] = marks;
      const parts = marks.length === 1 && !first!.includes("#") ? await page.members(first!) : marks;
      if (parts.length < 2) return [];
      const middle = Math.ceil(parts.length / 2);
      return [
        ...(await findSeenMarks(parts.slice(0, middle), left)),
        ...(await findSeenMarks(parts.slice(middle), left)),
      ];
    }

    it("is not visible to the next run in the same page", async () => {
      const left: string[] = [];
      let markCount = 0;
      const objects = await page.objects();
      for (const path of objects) markCount += (await findSeenMarks([path], left)).length;
      expect(left).to.deep.equal([]);
      expect(markCount).to.be.at.least(objects.length * 0.95);
    });
  });
}
