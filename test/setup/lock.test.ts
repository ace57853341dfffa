import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { importSetUpModule } from "./modules.js";

const { withLock } = await importSetUpModule<{
  withLock<T>(root: string, action: () => Promise<T>, limitMs?: number): Promise<T>;
}>("lock");

describe("the lock of the set-up", () => {
  let root: string;

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
    expect(failure).to.equal("no network");
    expect(existsSync(join(root, ".setup.lock"))).to.equal(false);
  });

  it("is taken from a process that has ended", async () => {
    mkdirSync(join(root, ".setup.lock"));
    writeFileSync(join(root, ".setup.lock/pid"), "999999999");
    expect(await withLock(root, async () => "mine")).to.equal("mine");
  });

  it("names the process that holds it if waiting does not end", async () => {
    mkdirSync(join(root, ".setup.lock"));
    writeFileSync(join(root, ".setup.lock/pid"), String(process.pid));
    const refusal = await withLock(root, async () => "mine", 0).catch((error: Error) => error.message);
    expect(refusal).to.match(new RegExp(`still running \\(process ${process.pid}\\)`));
  });
});
