/** Kills the browser processes of a service under load at random moments, and stops the service at random moments. */
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { type ServiceProcess, startProcess } from "../harness/process.js";
import { until } from "../harness/until.js";
import { type Editor, editorOf } from "../service/support.js";

const KILLS = Number(process.env["KILLS"] ?? 500);
const STOP_COUNT = Number(process.env["STOPS"] ?? 50);
const CALLERS = 4;
/** Maximum pause between two kills in milliseconds. */
const PAUSE_MAX_MS = 1_000;
/** Maximum time in milliseconds from SIGTERM to the exit of the process. */
const STOP_MAX_MS = 5_000;
/** Maximum duration of a call in milliseconds. */
const WAIT_MAX_MS = 5_000;
/** Relative number of kills of each kind of process. Browsers and zygotes have a lower share, because a browser needs time to restart. */
const KILL_SHARES = { renderer: 6, utility: 3, browser: 1, zygote: 1 } as const;
type ProcessKind = keyof typeof KILL_SHARES;
const KINDS = (Object.keys(KILL_SHARES) as ProcessKind[]).flatMap((kind) =>
  Array<ProcessKind>(KILL_SHARES[kind]).fill(kind),
);

interface BrowserProcess {
  pid: number;
  kind: string;
}

/** Returns the browsers' processes. The kind `browser` includes the process that the service starts and the browser's main process. */
function listBrowserProcesses(service: ServiceProcess): BrowserProcess[] {
  const found = readdirSync("/proc").flatMap((name) => {
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "latin1");
      const fields = readFileSync(`/proc/${name}/stat`, "latin1")
        .replace(/^.*\) /s, "")
        .split(" ");
      if (command === "") return [];
      const kind = /--type=([a-z-]+)/.exec(command)?.[1] ?? "browser";
      const isOfService = command.includes(`svc-chromium-${service.pid}-`);
      return [{ pid: Number(name), group: Number(fields[2]), kind, isBrowser: kind === "browser" && isOfService }];
    } catch {
      return [];
    }
  });
  const groups = new Set(found.filter(({ isBrowser }) => isBrowser).map(({ group }) => group));
  return found.filter(({ group }) => groups.has(group));
}

const anyKind = (): ProcessKind => KINDS[Math.floor(Math.random() * KINDS.length)]!;

async function killBrowserProcess(service: ServiceProcess, kind: ProcessKind): Promise<void> {
  await until(() => {
    const candidates = listBrowserProcesses(service).filter((row) => row.kind === kind);
    const victim = candidates[Math.floor(Math.random() * candidates.length)];
    if (!victim) return false;
    try {
      return process.kill(victim.pid, "SIGKILL");
    } catch {
      return false;
    }
  });
}

const actionsOf = (url: string): Record<string, string> => ({
  language: "const execute = async ({ payload }) => payload",
  fetching: `const execute = async () => (await fetch("${url}")).text()`,
  document: "async function execute() { localStorage.n = 1; document.title = 'x'; return document.title }",
});
/** Messages of errors that the loss of a browser process can cause. */
const LOSS_ERROR =
  /browser ended|page crashed|Failed to fetch|No browser was available|code of the previous run did not end/;

interface AnswerCounts {
  answers: number;
  failures: number;
  longestMs: number;
  unexplained: string[];
}

async function sendCalls(
  editor: Editor,
  names: readonly string[],
  seen: AnswerCounts,
  isOver: () => boolean,
): Promise<void> {
  const caller = async (first: number) => {
    for (let turn = first; !isOver(); turn += 1) {
      const startedAt = performance.now();
      const { http, body } = await editor.call("POST", `/${names[turn % names.length]}/runWithResult`, {});
      seen.longestMs = Math.max(seen.longestMs, performance.now() - startedAt);
      seen.answers += 1;
      if (http === 200) continue;
      seen.failures += 1;
      if (!LOSS_ERROR.test(String(body.error))) seen.unexplained.push(`${http} ${body.status}: ${body.error}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, at) => caller(at)));
}

describe("a service whose browser's processes die", function () {
  this.timeout(1_200_000);
  let host: Server;
  let service: ServiceProcess;
  let dataDir: string;
  const names = Object.keys(actionsOf(""));
  const environment = { ALLOW_PRIVATE_NETWORK: "1", LOG_LEVEL: "warn" };
  before(async () => {
    host = createServer((_request, response) => {
      response.setHeader("Access-Control-Allow-Origin", "*");
      setTimeout(() => response.end("read"), 20);
    });
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  });
  after(async () => {
    await service.clean();
    host.close();
    host.closeAllConnections();
  });

  it(`survives ${KILLS} kills under load, and no call waits for more than 5 s`, async () => {
    service = startProcess({ ...environment, LOG_LEVEL: "info" });
    ({ dataDir } = service);
    const editor = await editorOf(service);
    const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/`;
    for (const [name, code] of Object.entries(actionsOf(url))) await editor.create(name, code);
    const seen: AnswerCounts = { answers: 0, failures: 0, longestMs: 0, unexplained: [] };
    const killed: Record<string, number> = {};
    let isOver = false;
    const loaded = sendCalls(editor, names, seen, () => isOver);
    const startedAt = performance.now();
    for (let kill = 0; kill < KILLS; kill += 1) {
      await delay(Math.random() * PAUSE_MAX_MS);
      const kind = anyKind();
      await killBrowserProcess(service, kind);
      killed[kind] = (killed[kind] ?? 0) + 1;
    }
    isOver = true;
    await loaded;
    const metrics = await (await fetch(`${editor.url}/metrics`)).text();
    const rejections = Number(/^svc_unhandled_rejections_total (\d+)$/m.exec(metrics)?.[1]);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const { unexplained, ...figures } = seen;
    process.stdout.write(`      ${JSON.stringify({ ...figures, killed, rejections, seconds })}\n`);
    service.signal("SIGTERM");
    expect(await service.ended).to.deep.equal({ code: 0, signal: null });
    expect(unexplained).to.deep.equal([]);
    expect(rejections).to.equal(0);
    expect(seen.longestMs).to.be.below(WAIT_MAX_MS);
  });

  it(`exits with 0 at ${STOP_COUNT} stops at random moments, half of them beside a kill`, async () => {
    const codes: Record<string, number> = {};
    let longestMs = 0;
    for (let stop = 0; stop < STOP_COUNT; stop += 1) {
      const started = startProcess({ ...environment, LOG_LEVEL: "info", DATA_DIR: dataDir });
      service = started;
      let isOver = false;
      const loaded = editorOf(started)
        .then((editor) => {
          const seen: AnswerCounts = { answers: 0, failures: 0, longestMs: 0, unexplained: [] };
          return sendCalls(editor, names, seen, () => isOver);
        })
        // The service stops during the calls, so a call may fail.
        .catch(() => undefined);
      await started.listening();
      await delay(Math.random() * 3_000);
      if (stop % 2 === 0) await Promise.race([killBrowserProcess(started, anyKind()).catch(() => {}), delay(500)]);
      const startedAt = performance.now();
      started.signal("SIGTERM");
      isOver = true;
      const { code, signal } = await started.ended;
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      codes[`${code ?? signal}`] = (codes[`${code ?? signal}`] ?? 0) + 1;
      await loaded;
    }
    process.stdout.write(`      ${JSON.stringify({ codes, longestMs: Math.round(longestMs) })}\n`);
    expect(codes).to.deep.equal({ 0: STOP_COUNT });
    expect(longestMs).to.be.below(STOP_MAX_MS);
  });
});
