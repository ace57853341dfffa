import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { importSetUpModule, urlOfSetUpModule } from "./modules.js";

const { withLock } = await importSetUpModule<{
  withLock<T>(root: string, action: () => Promise<T>, limitMs?: number): Promise<T>;
}>("lock");

/** Script that takes the lock of the folder in its first argument, prints a line, and never releases the lock. */
const HOLDER = `
  const { withLock } = await import("${urlOfSetUpModule("lock")}");
  setInterval(() => {}, 1000);
  await withLock(process.argv[1], () => new Promise(() => console.log("locked")));
`;

describe("the lock of the set-up", () => {
  let root: string;

  /** Resolves to "free" or to the error's message. Does not wait for another holder. */
  const tryLock = () => withLock(root, async () => "free", 0).catch((error: Error) => error.message);

  /** Writes the lock of an earlier version of the set-up: a folder with a file that contains the holder's process ID. */
  function putProcessId(pid: number): void {
    mkdirSync(join(root, ".setup.lock"), { recursive: true });
    writeFileSync(join(root, ".setup.lock/pid"), String(pid));
  }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "svc-lock-"));
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  it("makes two set-ups of one checkout run one after the other", async () => {
    const events: string[] = [];
    const setUp = (name: string) => async () => {
      events.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${name} ends`);
    };
    await Promise.all([withLock(root, setUp("first")), withLock(root, setUp("second"))]);
    expect(events).to.deep.equal(["first begins", "first ends", "second begins", "second ends"]);
  });

  it("is free again after a failed set-up", async () => {
    const failure = await withLock(root, () => Promise.reject(new Error("no network"))).catch(
      (error: Error) => error.message,
    );
    expect([failure, await tryLock()]).to.deep.equal(["no network", "free"]);
  });

  it("is held by another process until that process is killed", async () => {
    const holder = spawn(process.execPath, ["--input-type=module", "--eval", HOLDER, root]);
    const ended = once(holder, "exit");
    await once(holder.stdout, "data");
    const whileItRuns = await tryLock();
    holder.kill("SIGKILL");
    await ended;
    expect(whileItRuns).to.match(/^another set-up of this checkout is still running/);
    expect(await tryLock()).to.equal("free");
  });

  it("is free after a crash, even if the process ID of its holder now belongs to another process", async () => {
    putProcessId(process.pid);
    expect(await tryLock()).to.equal("free");
  });

  it("is held even if its holder's process ID does not exist, as in another container", async () => {
    const refusal = await withLock(root, () => {
      putProcessId(999_999_999);
      return tryLock();
    });
    expect(refusal).to.match(/^another set-up of this checkout is still running/);
  });

  it("reports a folder that it cannot create", async () => {
    writeFileSync(join(root, ".setup.lock"), "");
    expect(await tryLock()).to.match(/^cannot lock the folder .*\.setup\.lock: EEXIST/);
  });

  it("names the package with the program that it needs", async function () {
    if (process.platform === "darwin") this.skip(); // On macOS, the set-up locks the folder by `open` and needs no program.
    const path = process.env["PATH"];
    process.env["PATH"] = root;
    try {
      expect(await tryLock()).to.match(/ENOENT; install flock, which is in the package util-linux$/);
    } finally {
      process.env["PATH"] = path;
    }
  });
});
