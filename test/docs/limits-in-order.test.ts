/** The list of limits in docs/internals/run-lifecycle.md against the code. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { STATUS } from "../../src/errors.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(`${ROOT}docs/internals/run-lifecycle.md`, "utf8");
const METRICS = readFileSync(`${ROOT}docs/reference/metrics.md`, "utf8");
const SECTION = PAGE.slice(PAGE.indexOf("## Limits of a call, in order"));
const ROWS = SECTION.split("\n").filter((line) => line.startsWith("| "));

const sources = readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
/** Each admission mechanism, as code creates it. `createRateWindow` is used through the gate. */
const MECHANISM =
  /new (FairSemaphore|Slots|UploadSlots)\(|create(TokenBucket|Patience|BodyRoom|RequestLimiter|Answers|Turns|Intake)\(/;

const filesIn = (text: string) => [...text.matchAll(/`([\w/-]+\.ts)`/g)].map(([, path]) => path!);

describe("the list of limits", () => {
  it("names each file that bounds requests, and no file that is gone", () => {
    const isUser = (path: string) => /^(service|operations\/operations\.ts$|engine|api\/server)/.test(path);
    const bounding = sources.filter(
      (path) => !isUser(path) && MECHANISM.test(readFileSync(`${ROOT}src/${path}`, "utf8")),
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
