/** Compares the pages about runs in docs/internals (states, steps of a call, limits) and the reference page of limits with the code. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { readLimitRows } from "../../src/cli/reference/limits.js";
import { replaceRunStatesSection } from "../../src/cli/reference/run-states.js";
import { STATUS } from "../../src/errors.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(`${ROOT}docs/internals/run-lifecycle.md`, "utf8");
const METRICS = readFileSync(`${ROOT}docs/reference/metrics.md`, "utf8");
const SECTION = PAGE.slice(PAGE.indexOf("## Limits of a call, in order"));
const ROWS = SECTION.split("\n").filter((line) => line.startsWith("| "));

const sources = readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
/** Matches calls that create a limiter. `createRateWindow` is not among them, because only the access checks use it. */
const LIMITER_CALL =
  /new (FairSemaphore|Slots|UploadSlots)\(|create(TokenBucket|ResponseMemory|FairTaskQueue|\w+Capacity|\w+Limiter)\(/;

const filesIn = (text: string) => [...text.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => path!);

describe("the pages about runs", () => {
  it("have the states and transitions of the code", () => {
    expect(replaceRunStatesSection(PAGE), "npm run reference").to.equal(PAGE);
  });

  it("name each step of a call by a function that is in its file, eight at most", () => {
    const architecture = readFileSync(`${ROOT}docs/internals/architecture.md`, "utf8");
    const steps = [...architecture.matchAll(/^\| (\w+) \| `(\w+)` \| `([\w/-]+\.ts)` \|/gm)];
    const names = ["route", "resolver", "access", "enqueue", "executor", "sandbox", "scan", "finish"];
    expect(steps.map(([, step]) => step)).to.deep.equal(names);
    for (const [, , name, file] of steps)
      expect(readFileSync(`${ROOT}src/${file}`, "utf8")).to.match(new RegExp(`\\b${name}\\b`));
  });

  it("name every module of the folder, and no other", () => {
    const modules = PAGE.slice(PAGE.indexOf("| module | work |"), PAGE.indexOf("## Leases"));
    const named = [...modules.matchAll(/`([\w-]+\.ts)`/g)].map(([, name]) => name!);
    const files = readdirSync(`${ROOT}src/operations/runs`);
    expect(named.sort()).to.deep.equal(files.sort());
  });

  it("are the only source of states: no statement of the folder names a state that it assigns", () => {
    for (const path of sources.filter((name) => /^operations\/(runs|records|triggers)\//.test(name))) {
      expect(readFileSync(`${ROOT}src/${path}`, "utf8"), path).to.not.match(/SET state = '/);
    }
  });
});

describe("the list of limits", () => {
  it("names each file that limits requests, and no file that is gone", () => {
    const isUser = (path: string) => /^(service|operations\/operations\.ts$|engine|api\/server)/.test(path);
    const bounding = sources.filter(
      (path) => !isUser(path) && LIMITER_CALL.test(readFileSync(`${ROOT}src/${path}`, "utf8")),
    );
    expect(bounding).to.have.length.above(20);
    const named = new Set(filesIn(SECTION));
    expect(bounding.filter((path) => !named.has(path)).sort()).to.deep.equal([]);
    expect([...named].filter((path) => !existsSync(`${ROOT}src/${path}`))).to.deep.equal([]);
  });

  it("numbers the limits of a call, with statuses and metrics that exist", () => {
    const ordered = ROWS.filter((row) => /^\| \d/.test(row)).map((row) => row.split("|").map((cell) => cell.trim()));
    expect(ordered.map(([, order]) => Number(order))).to.deep.equal(ordered.map((_, at) => at + 1));
    for (const [, , , , above, metric] of ordered) {
      for (const [, http, status] of above!.matchAll(/(\d{3}) `([A-Z_]+)`/g)) {
        expect(STATUS[status as keyof typeof STATUS]?.http, status).to.equal(Number(http));
      }
      for (const [, name] of metric!.matchAll(/`(svc_\w+)/g)) expect(METRICS).to.contain(name);
    }
  });
});

/** Constants that limit no caller: sizes of truncated texts and of generated keys, and a limit that follows from another one. */
const INTERNAL_CONSTANTS = [
  ...["WORD_MAX_CHARACTERS", "REASON_MAX_CHARACTERS", "FAILURE_REASON_MAX_CHARACTERS", "QUOTED_CHARACTERS_MAX"],
  ...[
    "SHOWN_CHARACTERS_MAX",
    "SECRET_BYTES",
    "SALT_BYTES",
    "HASH_BYTES",
    "ARTIFACT_NAME_MAX_CHARACTERS",
    "SEARCH_MIN_CHARACTERS",
  ],
];
/** Matches names of limits by their endings. */
const LIMIT = /(?:_MAX|_LIMIT|_CHARACTERS|_BYTES|_DEPTH|_SEGMENTS|_OPERATORS|_LISTED|_COUNTED|_KEPT|_PER_[A-Z_]+)$/;
/** Matches a template string that contains SQL instead of text for people. */
const STATEMENT = /\b(?:SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|AND|SET|VALUES|interval|octet_length)\b/;

describe("the reference page of limits", () => {
  const rows = [...readLimitRows(ROOT).values()].flat();

  it("has a row for each limit that an error names", () => {
    const isLocal = (path: string) => /^(?:web|cli|data|engine\/(?!bundler\/))/.test(path);
    const missing = sources
      .filter((path) => !isLocal(path))
      .flatMap((path) => {
        const text = readFileSync(`${ROOT}src/${path}`, "utf8");
        const templates = [...text.matchAll(/`[^`]*`/g)].map(([template]) => template);
        const named = templates
          .filter((template) => !STATEMENT.test(template))
          .flatMap((template) => [...template.matchAll(/\$\{([^}]*)\}/g)])
          .flatMap(([, expression]) => expression!.match(/\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/g) ?? [])
          .filter((name) => LIMIT.test(name) && !INTERNAL_CONSTANTS.includes(name));
        const isHere = (name: string) => text.includes(`const ${name} = `);
        return named
          .filter((name) => !rows.some((row) => row.name === name && (!isHere(name) || !row.file || row.file === path)))
          .map((name) => `${path} ${name}`);
      });
    expect(missing).to.deep.equal([]);
    expect(rows.length).to.be.above(200);
  });

  it("names statuses that exist", () => {
    const names = rows.flatMap(({ effect }) => effect.match(/\b[A-Z_]{7,}\b/g) ?? []);
    // Codes of errors of `request()` and `svc-ai`. STATUS does not contain them.
    const codes = ["TIMEOUT", "TRANSPORT"];
    expect(names.filter((name) => !(name in STATUS) && !codes.includes(name))).to.deep.equal([]);
    expect(names.length).to.be.above(100);
  });
});
