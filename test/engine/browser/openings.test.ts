/** Tests that opening new contexts and documents does not remove pages that are ready for other runs. */
import { expect } from "chai";
import { findOldestOfLargestOrigin, OPENING_IN_ADVANCE_QUEUE_KEY } from "../../../src/engine/browser/pages/pool.js";
import { resultOf, sharedBrowsers } from "./support.js";

const origin = (app: number) => `https://app-${app}.actions.internal`;
const ofApp = (app: number) => ({ isolationKey: `${app}:master`, origin: origin(app) });
const ONE_PAGE = "const execute = async () => 1";

describe("prepared pages", () => {
  const openedKeys: string[] = [];
  let shut: Promise<void> | null = null;
  const openings = {
    async enter(of: string) {
      openedKeys.push(of);
      if (of !== OPENING_IN_ADVANCE_QUEUE_KEY) await shut;
      return () => undefined;
    },
  };
  const browsers = sharedBrowsers({ openingQueue: openings });
  before(() => browsers.start());
  after(() => browsers.stop());
  const countOpened = (app: number) => openedKeys.filter((opened) => opened === origin(app)).length;

  it("are used without waiting for one that is being created", async () => {
    expect(await resultOf(browsers, ONE_PAGE, ofApp(1))).to.equal(1);
    const door = Promise.withResolvers<void>();
    shut = door.promise;
    const other = resultOf(browsers, ONE_PAGE, ofApp(2));
    expect(await resultOf(browsers, ONE_PAGE, ofApp(1))).to.equal(1);
    door.resolve();
    shut = null;
    expect(await other).to.equal(1);
    expect(countOpened(1)).to.equal(1);
  });

  it("are closed at the origin that has most of them, the oldest first", () => {
    const pages = ["a1", "b1", "c1", "b2", "c2", "c3", "a2"];
    const discarded: string[] = [];
    while (pages.length > 0) {
      const least = findOldestOfLargestOrigin(pages, ([origin]) => origin!);
      pages.splice(pages.indexOf(least), 1);
      discarded.push(least);
    }
    expect(discarded).to.deep.equal(["c1", "a1", "b1", "c2", "b2", "c3", "a2"]);
  });
});
