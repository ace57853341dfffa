/** Whatever a run sets, adds or calls on any reachable object, the next run in the same page sees none of it. */
import { expect } from "chai";
import { MODES } from "../../src/engine/browser/run.js";
import { MarkedPage } from "./marked-page.js";

/** Marks on these end the page; test/long/browser-marks.test.ts tests them member by member. */
const COSTLY = ["document", "history", "indexedDB", "cookieStore", "navigator.serviceWorker"].map(
  (path) => `scope.${path}`,
);

for (const mode of MODES) {
  describe(`traces that a run leaves in its own sandbox, mode ${mode}`, () => {
    let page: MarkedPage;

    before(async () => {
      page = await MarkedPage.open(mode);
    });
    after(() => page.stop());

    it("are not visible to the next run in the same page", async () => {
      const paths = (await page.objects()).filter((path) => !COSTLY.includes(path));
      expect(paths).to.include("scope");
      expect(await page.leftBy(paths)).to.deep.equal([]);
    });
  });
}
