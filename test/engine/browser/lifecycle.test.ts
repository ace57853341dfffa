/** The browser's life: its sandbox, its limits on a run's time, its death and its end. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { failureOf, resultOf, runOf, testBrowsers, until } from "./support.js";

const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`svc-chromium-${process.pid}-`));

/** Live processes of the browser's process group; zombies are the init process's to reap. */
function groupMembers(group: number): number[] {
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

describe("the browser's life", function () {
  this.timeout(30_000);
  let browsers: Browsers;

  beforeEach(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  afterEach(() => browsers.stop());

  it("runs its renderers in a sandbox, seen from outside", async () => {
    const proof = await browsers.sandbox();
    expect(proof).to.include({ seccompMode: 2, noNewPrivileges: true, ownUserNamespace: true, sandboxed: true });
    expect(proof?.uid).to.not.equal(0);
  });

  it("leaves no process and no folder when it stops", async () => {
    const group = browsers.pid()!;
    expect(groupMembers(group)).to.not.have.length(0);
    expect(folders()).to.have.length(1);
    await browsers.stop();
    await until(() => groupMembers(group).length === 0);
    expect(folders()).to.have.length(0);
    expect(browsers.ready()).to.equal(false);
  });

  for (const [title, code] of [
    ["a loop", "while (true);"],
    ["microtasks", "for (;;) await 0;"],
    ["timers", "const again = () => setTimeout(again, 0); again(); await new Promise(() => {});"],
    ["dialogs", "for (;;) alert(1);"],
    [
      "workers",
      "for (let i = 0; i < 4; i += 1) new Worker(URL.createObjectURL(new Blob(['while(true);']))); await new Promise(() => {});",
    ],
    ["a promise that never settles", "await new Promise(() => {})"],
  ] as const) {
    it(`ends ${title} at the time limit, and nothing of it is left within a second`, async () => {
      const group = browsers.pid()!;
      await resultOf(browsers, "const execute = async () => 1", { isolationKey: "other" });
      const failure = await failureOf(browsers, `async function execute() { ${code} }`, { timeoutMs: 300 });
      expect(failure.cause).to.equal("timeout");
      expect(failure.error.name).to.equal("TimeoutError");
      expect(failure.error.message).to.include("limit of 0.3 seconds");
      await until(() => busyMembers(group), 1_000);
      expect(await resultOf(browsers, "const execute = async () => 2")).to.equal(2);
    });
  }

  it("ends a run when its signal fires, running or waiting", async () => {
    const abort = new AbortController();
    const run = runOf("async function execute() { console.log('on'); while (true); }", {
      signal: abort.signal,
      onConsole: () => abort.abort(),
    });
    expect(await browsers.run(run)).to.deep.include({ ok: false, cause: "cancelled" });
    expect(await browsers.run(run)).to.deep.include({ ok: false, cause: "cancelled" });
    expect(browsers.free()).to.equal(4);
  });

  it("loses only its own runs when it is killed, says so, and is back within two seconds", async () => {
    const printed = new Promise<void>((resolve) => {
      const source = "async function execute() { console.log('on'); await new Promise(() => {}) }";
      const run = browsers.run(runOf(source, { onConsole: () => resolve() }));
      lost = run;
    });
    await printed;
    process.kill(browsers.pid()!, "SIGKILL");
    const outcome = await lost;
    expect(outcome).to.deep.include({ ok: false, cause: "browser" });
    const killedAt = Date.now();
    expect(await resultOf(browsers, "const execute = async () => 3")).to.equal(3);
    expect(Date.now() - killedAt).to.be.lessThan(2_000);
    expect(browsers.ready()).to.equal(true);
  });
  let lost: ReturnType<Browsers["run"]>;
});

/** True once no process of the group uses the processor any more. */
async function busyMembers(group: number): Promise<boolean> {
  const ticks = () =>
    groupMembers(group).reduce((sum, pid) => {
      try {
        const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
          .replace(/^.*\) /, "")
          .split(" ");
        return sum + Number(fields[11]);
      } catch {
        return sum;
      }
    }, 0);
  const before = ticks();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return ticks() - before <= 3;
}
