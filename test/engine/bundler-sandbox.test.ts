/** Tests the bundler's sandbox: which operations it blocks, and how packages are bundled without it. */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import pino from "pino";
import { BundlerBusyError, PackageError, SandboxUnavailableError } from "../../src/engine/bundler/fault.js";
import { findMissingResource, UNSHARE_COMMAND } from "../../src/engine/bundler/sandbox.js";
import { Bundler } from "../../src/engine/bundler.js";
import { createArchive } from "../harness/npm-registry.js";
import { longTest } from "../harness/samples.js";
import type { ProbeTask, Report } from "./sandbox-probe.js";

const PROBE = fileURLToPath(new URL("./sandbox-probe.js", import.meta.url));
const SECRETS = { SETTINGS_KEY: "a-key", DATABASE_URL: "postgres://someone:a-password@127.0.0.1/none" };
type Options = Partial<ConstructorParameters<typeof Bundler>[0]>;

const placed = (archive: Buffer) => ({ name: "thing", version: "1.0.0", folder: "/node_modules/thing", archive });
const LIBRARY_ARCHIVE = placed(
  createArchive([
    { path: "package/package.json", content: "{}" },
    { path: "package/index.js", content: "module.exports = 1" },
  ]),
);

/** Creates a bundler, and collects its log. */
function bundlerWith(options: Options) {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  return { lines, bundler: new Bundler({ log, sandbox: true, ...options }) };
}

const errorOf = (bundling: Promise<unknown>): Promise<Error> =>
  bundling.then(
    () => expect.fail("it was bundled"),
    (error: Error) => error,
  );

/** Starts a bundler that executes PROBE (sandbox-probe.ts) with this task. Returns the error. */
async function runProbe(task: ProbeTask, options: Options = {}): Promise<Error> {
  const { bundler } = bundlerWith({ script: PROBE, ...options });
  const archive = Buffer.from(JSON.stringify(task));
  return errorOf(bundler.bundle([placed(archive)]));
}

describe("the process in which packages are bundled", () => {
  const server = createServer((socket) => socket.destroy());
  let folder: string;
  let port: number;

  before(async () => {
    Object.assign(process.env, SECRETS);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ({ port } = server.address() as { port: number });
    folder = mkdtempSync(join(tmpdir(), "svc-sandbox-"));
    writeFileSync(join(folder, "kept"), "kept");
  });
  after(() => {
    for (const name of Object.keys(SECRETS)) delete process.env[name];
    server.close();
    rmSync(folder, { recursive: true });
  });

  const probeReport = async (options: Options = {}): Promise<Report> =>
    JSON.parse((await runProbe({ port, folder }, options)).message);

  it("has no network, and none of the service's environment", async () => {
    const { network, environment, outcomes } = await probeReport();
    expect(network).to.match(/^net:/).and.not.equal(readlinkSync("/proc/self/ns/net"));
    expect(outcomes.connect).to.equal("ENETUNREACH");
    expect(environment.sort()).to.deep.equal(["GOMAXPROCS", "GOMEMLIMIT", "PATH", "PWD"]);
    expect(outcomes.environ).to.equal("EACCES");
  });

  it("can write, create or remove nothing, not even where everyone may", async () => {
    const { isRestrictedByLandlock, account } = await bundlerWith({}).bundler.findSandbox();
    // Without Landlock, only a separate account of the bundler protects files. If both are missing, nothing protects them.
    if (!isRestrictedByLandlock && account === null) return;
    if (isRestrictedByLandlock) {
      chmodSync(folder, 0o777);
      chmodSync(join(folder, "kept"), 0o666);
    }
    const { connect: _, environ: __, ...fileOutcomes } = (await probeReport()).outcomes;
    const refused = "EACCES";
    expect(fileOutcomes).to.deep.equal({
      ...{ write: refused, truncate: refused, create: refused, folder: refused, remove: refused, shell: "refused" },
    });
    expect(readdirSync(folder)).to.deep.equal(["kept"]);
    expect(readFileSync(join(folder, "kept"), "utf8")).to.equal("kept");
  });

  it("is ended above its memory limit, and the error says so", async () => {
    const fault = await runProbe(
      { port, folder, stays: true },
      { limits: { timeoutMs: 30_000, memoryBytes: 2 ** 20 } },
    );
    expect(fault).to.be.instanceOf(PackageError);
    expect(fault.message).to.equal("the bundler exceeded its limit of 1 MB");
  });

  longTest(
    "counts as too busy if something else ends it, and as over its limit if the kernel ends it for its CPU time or memory",
    async () => {
      for (const signal of ["SIGXCPU", "SIGABRT"] as const) {
        const fault = await runProbe({ port, folder, signal });
        expect(fault, signal).to.be.instanceOf(PackageError);
        expect(fault.message).to.equal("the bundler exceeded its limit of 30 s or 512 MB");
      }
      expect(await runProbe({ port, folder, signal: "SIGKILL" })).to.be.instanceOf(BundlerBusyError);
    },
  );

  longTest(
    "is checked again at the next package if the machine has no namespaces; until then packages are rejected",
    async () => {
      const unshareCommand = ["false"];
      const { bundler, lines } = bundlerWith({ unshareCommand });
      const refusal = await errorOf(bundler.bundle([LIBRARY_ARCHIVE]));
      expect(refusal).to.be.instanceOf(SandboxUnavailableError);
      expect(lines).to.deep.equal([refusal.message]);
      unshareCommand.splice(0, 1, ...UNSHARE_COMMAND);
      expect((await bundler.bundle([LIBRARY_ARCHIVE])).global).to.equal("thing");
      expect((await bundler.findSandbox()).isNetworkIsolated).to.equal(true);
    },
  );

  for (const [cause, command, message] of [
    ["a process was killed", "kill -9 $$", "was ended before it finished"],
    [
      "the kernel had no more namespaces",
      "echo 'unshare: unshare failed: No space left on device' >&2; exit 1",
      "cannot start at the moment (No space left on device)",
    ],
    [
      "the machine had too little memory",
      "echo 'setpriv: failed to execute perl: Cannot allocate memory' >&2; exit 126",
      "cannot start at the moment (Cannot allocate memory)",
    ],
  ] as const)
    longTest(
      `is not replaced by a weaker one because ${cause}: the next package is bundled in the strictest`,
      async () => {
        const mark = join(folder, cause.replaceAll(" ", "-"));
        const failOnceCommand = ["sh", "-c", `if mkdir ${mark}; then ${command}; fi; exec "$0" "$@"`];
        const { bundler, lines } = bundlerWith({
          unshareCommand: [...failOnceCommand, ...UNSHARE_COMMAND],
          sandbox: false,
        });
        chmodSync(folder, 0o777);
        const refusal = await errorOf(bundler.bundle([LIBRARY_ARCHIVE]));
        expect(refusal).to.be.instanceOf(BundlerBusyError);
        expect(refusal.message).to.contain(message);
        expect((await bundler.bundle([LIBRARY_ARCHIVE])).global).to.equal("thing");
        const strictBundler = bundlerWith({});
        const { commands: _, ...protections } = await bundler.findSandbox();
        const { commands: __, ...strictProtections } = await strictBundler.bundler.findSandbox();
        expect(protections).to.deep.equal(strictProtections);
        expect(lines).to.deep.equal(strictBundler.lines);
      },
    );

  it("is not available if the operator has set the maximum number of namespaces to 0", () => {
    const text = "unshare: unshare failed: No space left on device\n";
    writeFileSync(join(folder, "max_net_namespaces"), "7\n");
    for (const [max, found] of [
      ["0\n", null],
      ["100\n", "No space left on device"],
    ] as const) {
      writeFileSync(join(folder, "max_user_namespaces"), max);
      expect(findMissingResource(text, folder)).to.equal(found);
    }
    for (const name of ["max_net_namespaces", "max_user_namespaces"]) rmSync(join(folder, name));
    expect(findMissingResource("unshare: unshare failed: Operation not permitted\n", folder)).to.equal(null);
  });

  longTest("does not start after a stop", async () => {
    const { bundler } = bundlerWith({});
    await bundler.bundle([LIBRARY_ARCHIVE]);
    bundler.stop();
    expect(await errorOf(bundler.bundle([LIBRARY_ARCHIVE]))).to.be.instanceOf(BundlerBusyError);
  });

  it("has network access only if the machine has no namespaces and the operator allows it, but no environment", async () => {
    const open = { unshareCommand: ["false"], sandbox: false };
    const { bundler, lines } = bundlerWith(open);
    expect((await bundler.bundle([LIBRARY_ARCHIVE])).global).to.equal("thing");
    expect(lines[0]).to.contain("a process that has a network");
    const { outcomes, environment } = await probeReport(open);
    expect(outcomes).to.include({ connect: "done", environ: "EACCES" });
    expect(environment).to.not.include.members(Object.keys(SECRETS));
  });
});
