import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { type ChromiumPaths, findChromium, getDefaultChromiumPaths } from "../../src/engine/chromium-path.mjs";
import { importSetUpModule } from "./modules.js";

type Installer = () => Promise<void>;
const { installUntilFound, needsChromium } = await importSetUpModule<{
  needsChromium(environment: Record<string, string>): boolean;
  installUntilFound(
    find: () => string | null,
    installers: Installer[],
  ): Promise<{ path: string | null; failures: string[] }>;
}>("chromium");

describe("the search for Chromium", () => {
  let root: string;
  let places: ChromiumPaths;

  function put(path: string, mode = 0o755): string {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, mode);
    return file;
  }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-chromium-"));
    places = {
      programs: [join(root, "local"), join(root, "bin")],
      caches: [join(root, "cache"), join(root, "public")],
    };
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  it("prefers the headless shell, then chromium, then Chrome, then Puppeteer's cache", () => {
    const cached = put(
      "cache/chrome-headless-shell/linux-156.0.1.2/chrome-headless-shell-linux64/chrome-headless-shell",
    );
    const found = [findChromium(null, places)];
    const expected = [cached];
    for (const name of ["google-chrome-stable", "google-chrome", "chromium", "chromium-headless-shell"]) {
      expected.push(put(`bin/${name}`));
      found.push(findChromium(null, places));
    }
    expect(found).to.deep.equal(expected);
  });

  it("uses the newest version of a cache, by number", () => {
    put("cache/chrome/linux-99.0.9.9/chrome-linux64/chrome");
    const newest = put("cache/chrome/linux-156.0.1.2/chrome-linux64/chrome");
    expect(findChromium(null, places)).to.equal(newest);
  });

  it("finds an installation for all accounts, after the user's own", () => {
    const shared = put(
      "public/chrome-headless-shell/linux-156.0.1.2/chrome-headless-shell-linux64/chrome-headless-shell",
    );
    const found = findChromium(null, places);
    const downloaded = put("cache/chrome/linux-99.0.1.2/chrome-linux64/chrome");
    expect([found, findChromium(null, places)]).to.deep.equal([shared, downloaded]);
  });

  it("skips files that cannot be started", () => {
    put("bin/chromium-headless-shell", 0o644);
    mkdirSync(join(root, "local/chromium"), { recursive: true });
    const chrome = put("bin/google-chrome");
    expect(findChromium(null, places)).to.equal(chrome);
  });

  it("uses CHROME_PATH or nothing: a wrong one does not fall back silently", () => {
    put("bin/chromium");
    const explicit = put("elsewhere/my-chrome");
    const found = [findChromium(explicit, places), findChromium(join(root, "missing"), places)];
    expect(found).to.deep.equal([explicit, null]);
  });

  it("finds nothing if nothing is installed", () => {
    expect(findChromium(null, places)).to.equal(null);
  });

  it("looks into PUPPETEER_CACHE_DIR instead of the home folder", () => {
    expect(getDefaultChromiumPaths("/somewhere").caches[0]).to.equal("/somewhere");
  });
});

describe("installers of Chromium in the set-up", () => {
  it("are only needed by runners without browsers on other machines", () => {
    const environments: Record<string, string>[] = [
      {},
      { ROLES: "" },
      { ROLES: "api, runner" },
      { ROLES: "api,scheduler" },
      { BROWSER_WS_ENDPOINTS: "ws://10.0.0.8:9222" },
    ];
    expect(environments.map(needsChromium)).to.deep.equal([true, true, true, false, false]);
  });

  it("are tried in order until one installs a browser", async () => {
    const tried: string[] = [];
    let path: string | null = null;
    const installer = (name: string, brings: string | null): Installer => {
      return async () => {
        tried.push(name);
        path = brings;
        if (!brings) throw new Error(`${name}: no network`);
      };
    };
    const installers = [installer("apt", null), installer("puppeteer", "/there"), installer("never", "/elsewhere")];
    const result = await installUntilFound(() => path, installers);
    expect({ ...result, tried }).to.deep.equal({
      path: "/there",
      failures: ["apt: no network"],
      tried: ["apt", "puppeteer"],
    });
  });

  it("are each quoted if none installs one", async () => {
    const failing = (reason: string) => () => Promise.reject(new Error(reason));
    const result = await installUntilFound(() => null, [failing("apt: locked"), failing("puppeteer: offline")]);
    expect(result).to.deep.equal({ path: null, failures: ["apt: locked", "puppeteer: offline"] });
  });
});
