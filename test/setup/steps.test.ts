import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { until } from "../harness/until.js";
import { urlOfSetUpModule } from "./modules.js";

/** Script that runs two programs in the folder in its first argument. The first one writes its process ID, and does not end by itself. */
const SET_UP = `
  const { run } = await import("${urlOfSetUpModule("steps")}");
  const runInFolder = (script) => run("sh", ["-c", script], { cwd: process.argv[1] });
  await runInFolder("echo $$ > pid.part && mv pid.part pid && exec sleep 600");
  await runInFolder("touch second");
`;

describe("a program of the set-up", () => {
  let root: string;
  let setUp: ChildProcess;

  const readPid = () => Number(readFileSync(join(root, "pid"), "utf8"));

  function isRunning(pid: number): boolean {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-steps-"));
    setUp = spawn(process.execPath, ["--input-type=module", "--eval", SET_UP, root], { stdio: "inherit" });
    await until(() => existsSync(join(root, "pid")));
  });

  afterEach(async () => {
    if (isRunning(readPid())) process.kill(readPid(), "SIGKILL");
    await rm(root, { recursive: true, force: true });
  });

  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it(`ends by a ${signal} to the set-up, which then fails and starts no other program`, async () => {
      const ended = once(setUp, "exit");
      setUp.kill(signal);
      expect(await ended).to.deep.equal([1, null]);
      expect([isRunning(readPid()), existsSync(join(root, "second"))]).to.deep.equal([false, false]);
    });
  }
});
