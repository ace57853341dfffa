/** Checks the table in browser-surface.txt. For each name that a run can reach, the table states how it is reset after the run. */
import { readFileSync } from "node:fs";
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import {
  FORBIDDEN_BROWSER_FEATURES,
  FORBIDDEN_GLOBAL_MEMBERS,
} from "../../src/engine/browser/pages/document-policy.js";
import { EVALUATION_MODES, type EvaluationMode, modeHasNetwork } from "../../src/engine/browser/run.js";
import { resultOf, sharedBrowsers } from "../engine/browser/support.js";
import { walkSurface } from "./browser-walk.js";

const TABLE_FILE = new URL("../../../test/attacks/browser-surface.txt", import.meta.url);
const ISOLATE_MODES = EVALUATION_MODES.filter((mode) => mode !== "document");
/** True for names that send requests. renewal.test.ts tests the state that their responses leave in the browser. */
const isRequestName = (key: string) =>
  /^worker: (Request|Response) |(GlobalScope|EventTarget) (fetch|Request|Response)$/.test(key);
const CLASSES = ["ended", "cleared", "forbidden", "same"];

/** Features of the Permissions-Policy header that a run may use: none stores data, prompts a person or starts a process. */
const ALLOWED_FEATURES =
  "aria-notify autoplay ch-device-memory ch-downlink ch-dpr ch-ect ch-prefers-color-scheme ch-prefers-reduced-motion " +
  "ch-prefers-reduced-transparency ch-rtt ch-save-data ch-ua ch-ua-arch ch-ua-bitness ch-ua-form-factors ch-ua-full-version " +
  "ch-ua-full-version-list ch-ua-high-entropy-values ch-ua-mobile ch-ua-model ch-ua-platform ch-ua-platform-version " +
  "ch-ua-wow64 ch-viewport-height ch-viewport-width ch-width cross-origin-isolated local-network local-network-access " +
  "loopback-network media-playback-while-not-visible sync-xhr";

type Surface = Record<string, string[]>;
interface SurfaceEntry {
  holder: string;
  scope: "d" | "w";
  name: string;
  fate: string;
}

const keyOf = ({ scope, holder, name }: Omit<SurfaceEntry, "fate">) =>
  `${scope === "d" ? "document" : "worker"}: ${holder} ${name}`;

function readTable(): SurfaceEntry[] {
  const entries: SurfaceEntry[] = [];
  let fate = "";
  const text = readFileSync(TABLE_FILE, "utf8").replaceAll(/\n {4}/g, " ");
  for (const line of text.split("\n").filter((tableLine) => tableLine !== "" && !tableLine.startsWith("#"))) {
    if (line.startsWith("== ")) fate = /^== (\w+):/.exec(line)![1]!;
    else {
      const [, holder, scopes, names] = /^(\S+) ([dw]+):(.*)$/.exec(line)!;
      for (const scope of scopes! as Iterable<"d" | "w">) {
        // For an interface without members, `names` is empty. The table then gets one entry with an empty name.
        for (const name of names!.trim().split(" ")) entries.push({ holder: holder!, scope, name, fate });
      }
    }
  }
  return entries;
}

function entriesOf(surface: Surface, scope: "d" | "w"): string[] {
  return Object.entries(surface).flatMap(([holder, names]) =>
    (names.length === 0 ? [""] : names).map((name) => keyOf({ scope, holder, name })),
  );
}

describe("the features of the browser", () => {
  const walkCode = `const walkSurface = ${walkSurface};`;
  const table = readTable();
  let browsers: Browsers;
  let page: Surface;
  let worker: Surface;
  const surfacesByMode: Partial<Record<EvaluationMode, Surface>> = {};

  before(async () => {
    browsers = sharedBrowsers();
    await browsers.start();
    page = (await resultOf(
      browsers,
      `const execute = async () => { ${walkCode} return walkSurface(globalThis, "Window") }`,
    )) as Surface;
    const source = `(() => { ${walkCode} postMessage(walkSurface(globalThis, "DedicatedWorkerGlobalScope")) })()`;
    const workerCode = `const execute = () => new Promise((resolve) => {
      new Worker(URL.createObjectURL(new Blob([${JSON.stringify(source)}]))).onmessage = ({ data }) => resolve(data) })`;
    worker = (await resultOf(browsers, workerCode)) as Surface;
    const cut = `const execute = async () => { ${walkCode} return walkSurface(globalThis, "DedicatedWorkerGlobalScope") }`;
    for (const mode of ISOLATE_MODES) surfacesByMode[mode] = (await resultOf(browsers, cut, { mode })) as Surface;
  });
  after(() => browsers.stop());

  it("are in the table by name, with their treatment: nothing is new, nothing is missing", () => {
    const listed = table.map(keyOf);
    const present = [...entriesOf(page, "d"), ...entriesOf(worker, "w")];
    const known = new Set(listed);
    const presentKeys = new Set(present);
    expect(
      present.filter((key) => !known.has(key)),
      "new in the browser: class each in browser-surface.txt",
    ).to.deep.equal([]);
    expect(
      listed.filter((key) => !presentKeys.has(key)),
      "gone from the browser: take each out of browser-surface.txt",
    ).to.deep.equal([]);
  });

  it("have each name once in the table, in one of four classes", () => {
    expect(table.filter(({ fate }) => !CLASSES.includes(fate))).to.deep.equal([]);
    expect(new Set(table.map(keyOf)).size).to.equal(table.length);
  });

  for (const mode of ISOLATE_MODES)
    it(`in mode ${mode} include only those of a worker, without cleared and forbidden ones`, () => {
      const fateByKey = new Map(table.filter(({ scope }) => scope === "w").map((entry) => [keyOf(entry), entry.fate]));
      // Returns the table's possible keys for a name. Brackets mark an interface that the browser has removed from the global scope.
      const listPossibleKeys = (key: string) => [
        key,
        key.replace(/[()]/g, ""),
        ...["WorkerGlobalScope", "DedicatedWorkerGlobalScope"].map((scope) =>
          key.replace(/: (DedicatedWorkerGlobalScope|EventTarget) /, `: ${scope} `),
        ),
      ];
      const outcomeOf = (key: string) =>
        listPossibleKeys(key).flatMap((way) => fateByKey.get(way) ?? [])[0] ?? "unknown";
      const unlistedNames = entriesOf(surfacesByMode[mode]!, "w").filter(
        (key) =>
          !key.endsWith(" ") &&
          !["ended", "same"].includes(outcomeOf(key)) &&
          !(modeHasNetwork(mode) && isRequestName(key)),
      );
      expect(unlistedNames).to.deep.equal([]);
    });

  it("include none of the removed names", () => {
    for (const [holder, names] of Object.entries(FORBIDDEN_GLOBAL_MEMBERS)) {
      const present = new Set([...(page[holder] ?? []), ...(worker[holder] ?? [])]);
      expect(
        names.filter((name) => present.has(name)),
        holder,
      ).to.deep.equal([]);
    }
  });

  it("do not include a forbidden interface in a document, a frame or a worker", async () => {
    const names = [...new Set(table.filter(({ fate }) => fate === "forbidden").map(({ holder }) => holder))];
    const made = `const made = (scope) => ${JSON.stringify(names)}.filter((name) => {
      try { return Reflect.construct(scope[name], ["x", {}]) && true } catch { return false }
    });`;
    const pageCode = `${made} const execute = async () => {
      const frame = document.createElement("iframe"); document.body.append(frame);
      return [...made(window), ...made(frame.contentWindow)];
    }`;
    expect(await resultOf(browsers, pageCode)).to.deep.equal([]);
  });

  it("have a decision for every feature that a document may request", async () => {
    const features = await resultOf(browsers, "const execute = async () => document.featurePolicy.features().sort()");
    expect(features).to.deep.equal([...FORBIDDEN_BROWSER_FEATURES, ...ALLOWED_FEATURES.split(" ")].sort());
  });

  it("do not include a forbidden feature, in a document or a frame of another origin", async () => {
    const code = `const execute = async () => {
      const frame = document.createElement("iframe");
      frame.allow = "camera *; microphone *; geolocation *; clipboard-read *; usb *";
      frame.src = "data:text/html,<script>parent.postMessage(document.featurePolicy.allowedFeatures(), '*')</scr" + "ipt>";
      const told = new Promise((resolve) => { window.onmessage = ({ data }) => resolve(data) });
      document.body.append(frame);
      return [...document.featurePolicy.allowedFeatures(), ...(await told)];
    }`;
    const allowed = (await resultOf(browsers, code)) as string[];
    expect(allowed.filter((feature) => FORBIDDEN_BROWSER_FEATURES.includes(feature))).to.deep.equal([]);
  });
});
