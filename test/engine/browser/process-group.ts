/** Lists the browser's processes, and executes runs while the test kills some of them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import type { PageRunRequest } from "../../../src/engine/browser/run.js";
import { until } from "../../harness/until.js";
import { runOf } from "./support.js";

export function groupMembers(group: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/stat`))
    .filter((name) => {
      try {
        const [state, , pgrp] = readFileSync(`/proc/${name}/stat`, "utf8")
          .replace(/^.*\) /, "")
          .split(" ");
        return Number(pgrp) === group && state !== "Z";
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Reads a file of the process in /proc. Returns "" if the process has ended. */
export function procFile(pid: number, file: "cmdline" | "statm"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

/** Returns the PIDs of the sandboxed zygotes, one of which starts the renderers. */
export function zygotesOf(group: number): number[] {
  return groupMembers(group).filter((pid) => {
    const command = procFile(pid, "cmdline");
    return command.includes("--type=zygote") && !command.includes("--no-zygote-sandbox");
  });
}

export const renderersOf = (group: number) =>
  groupMembers(group).filter((pid) => procFile(pid, "cmdline").includes("--type=renderer"));

export function largestRenderer(group: number): number {
  const resident = (pid: number) => Number(procFile(pid, "statm").split(" ")[1] ?? 0);
  return renderersOf(group).reduce((largest, pid) => (resident(pid) > resident(largest) ? pid : largest));
}

/** Starts a run that never ends by itself. The promise `started` resolves when its code runs. */
export function startHangingRun(browsers: Browsers, changes: Partial<PageRunRequest> = {}, code = "") {
  const source = `async function execute() { ${code} console.log("on"); await new Promise(() => {}) }`;
  let onConsole = () => {};
  const started = new Promise<void>((resolve) => {
    onConsole = resolve;
  });
  return { run: browsers.run(runOf(source, { onConsole: () => onConsole(), ...changes })), started };
}

/** Executes runs by four callers. Kills a renderer, and again after every two ended runs. Returns outcomes and the longest duration. */
export async function runWhileRenderersDie(
  browsers: Browsers,
  kills: number,
): Promise<{ outcomes: string[]; longestMs: number }> {
  const group = browsers.getBrowserPid()!;
  const outcomes: string[] = [];
  let over = false;
  let longestMs = 0;
  // The code stores data, so the browser context cannot be used again, and the pool always opens new pages.
  const code = "const execute = async () => { localStorage.n = 1; return 1 }";
  const caller = async (key: number) => {
    while (!over) {
      const startedAt = performance.now();
      const outcome = await browsers.run(runOf(code, { isolationKey: `${key}:master` }));
      longestMs = Math.max(longestMs, performance.now() - startedAt);
      outcomes.push(outcome.ok ? "ok" : outcome.cause);
    }
  };
  const callers = [1, 2, 3, 4].map(caller);
  try {
    for (let kill = 0; kill < kills; kill += 1) {
      const before = outcomes.length;
      const alive = renderersOf(group);
      try {
        process.kill(alive[kill % alive.length]!, "SIGKILL");
      } catch {
        // Ignores the error: the renderer has already ended.
      }
      await until(() => outcomes.length > before + 1);
    }
  } finally {
    over = true;
  }
  await Promise.all(callers);
  return { outcomes, longestMs };
}
