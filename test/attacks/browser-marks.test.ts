import { expect } from "chai";
import { EVALUATION_MODES } from "../../src/engine/browser/run.js";
import { MarkedPage } from "./marked-page.js";

/** Objects with members that end the page if marked. test/long/browser-marks.test.ts marks these members one by one. */
const PAGE_ENDING_OBJECTS = ["document", "history", "indexedDB", "cookieStore", "navigator.serviceWorker"].map(
  (path) => `scope.${path}`,
);

for (const mode of EVALUATION_MODES) {
  describe(`traces that a run leaves in its own sandbox, mode ${mode}`, () => {
    let page: MarkedPage;

    before(async () => {
      page = await MarkedPage.open(mode);
    });
    after(() => page.stop());

    it("are not visible to the next run in the same page", async () => {
      const paths = (await page.objects()).filter((path) => !PAGE_ENDING_OBJECTS.includes(path));
      expect(paths).to.include("scope");
      // `findMarksLeftBy` returns null if a busy machine could not reset the page in time. An attempt in a replaced page proves nothing.
      let differences: string[] | null = null;
      while (differences === null) differences = await page.findMarksLeftBy(paths);
      expect(differences).to.deep.equal([]);
    });
  });
}
