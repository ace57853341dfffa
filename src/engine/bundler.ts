/**
 * Makes one script for browsers out of strangers' packages, in a process of its own for each, which is thrown away: without network,
 * environment and any file that it may write, as nobody, bounded in time, memory and result. Nothing of a package is run there. Knows no
 * registry and no app.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { BundlerBusyError, PackageFault } from "./bundler/fault.js";
import type { Placed, Script } from "./bundler/make-script.js";

const CHILD = fileURLToPath(new URL("./bundler/child.js", import.meta.url));

const TIME_LIMIT_MS = 30_000;
const CPU_LIMIT_SECONDS = 30;
/** Who had less of a processor by the end of that time was kept from it by others. */
const KEPT_FROM_IT = 1 / 2;
const TICKS_A_SECOND = 100;
/** What the process and the bundler that it starts may hold together, looked at so often. */
const MEMORY_MAX_BYTES = 512 * 1024 * 1024;
const LOOK_EVERY_MS = 100;
/** What the kernel lets each of them set aside: Node does that with more than it uses. */
const DATA_LIMIT_KB = 1024 * 1024;
const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
/** The script, twice over where all of it is escaped, its declarations, and what is told beside it. */
const ANSWER_MAX_BYTES = 2 * SCRIPT_MAX_BYTES + 2 * 1024 * 1024;
/** Runs come first. */
const PRIORITY = 10;
/** An account of nobody, for a service that is root; other numbers than browsers and pictures have. */
const NOBODY = 64_051;
/** A shell sets the limits, for Node cannot: no core, no written file, so much processor time, memory and descriptors. */
const LIMITED = `ulimit -c 0; ulimit -f 0; ulimit -t ${CPU_LIMIT_SECONDS}; ulimit -d ${DATA_LIMIT_KB} 2>/dev/null; ulimit -n 64; exec "$0" "$@"`;
/** In namespaces of its own it has no network but an empty one. */
const APART = ["unshare", "--user", "--net", "--"];
const NODE_FLAGS = ["--max-old-space-size=256", "--no-warnings"];
/** The bundler's garbage is collected before the limit ends it. */
const ENVIRONMENT = { PATH: "/usr/bin:/bin", GOMEMLIMIT: "320MiB", GOMAXPROCS: "2" };

/** What the process is asked; the archives follow in that order. */
export interface BundleJob {
  packages: (Placed & { bytes: number })[];
  maxBytes: number;
}

/** What it answers. */
export type Answer = { script: Script } | { fault: string; reason?: string };

export interface PackageArchive extends Placed {
  /** Gzipped tar, as the registry has it. */
  archive: Buffer;
}

export type Bundler = ReturnType<typeof createBundler>;

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length;
    if (bytes > ANSWER_MAX_BYTES) return "";
    chunks.push(chunk as Buffer);
  }
  return String(Buffer.concat(chunks));
}

/** Processor time of a process and its children, in seconds; Infinity where the machine does not tell. */
export async function processorTimeOf(pid: number): Promise<number> {
  try {
    const [stat, children] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "latin1"),
      readFile(`/proc/${pid}/task/${pid}/children`, "utf8"),
    ]);
    // Own time in user and kernel, and that of children that have ended.
    const ticks = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 15);
    const theirs = await Promise.all(
      children
        .split(" ")
        .filter(Boolean)
        .map((one) => processorTimeOf(Number(one))),
    );
    return [...theirs, ...ticks.map((one) => Number(one) / TICKS_A_SECOND)].reduce((sum, one) => sum + one, 0);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Resident memory of a process and its children, in bytes; 0 where the machine does not tell. */
async function heldBy(pid: number): Promise<number> {
  try {
    const [status, children] = await Promise.all([
      readFile(`/proc/${pid}/status`, "utf8"),
      readFile(`/proc/${pid}/task/${pid}/children`, "utf8"),
    ]);
    const own = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
    const theirs = await Promise.all(
      children
        .split(" ")
        .filter(Boolean)
        .map((one) => heldBy(Number(one))),
    );
    return theirs.reduce((sum, one) => sum + one, own);
  } catch {
    return 0;
  }
}

export function createBundler(options: {
  log: Logger;
  timeLimitMs?: number;
  /** Of a process and its children, in seconds. */
  processorTime?: (pid: number) => Promise<number>;
}) {
  const { log, timeLimitMs = TIME_LIMIT_MS, processorTime = processorTimeOf } = options;
  const running = new Set<ChildProcess>();
  const isRoot = process.getuid?.() === 0;
  let how: Promise<{ prefix: string[]; account: { uid: number; gid: number } | null }> | null = null;

  function kill(child: ChildProcess): void {
    try {
      // With the bundler that it has started.
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  }

  function start(prefix: readonly string[], account: { uid: number; gid: number } | null): ChildProcess {
    const args = ["-c", LIMITED, ...prefix, process.execPath, ...NODE_FLAGS, CHILD];
    const stdio = ["pipe" as const, "ignore" as const, "ignore" as const, "pipe" as const];
    const child = spawn("/bin/sh", args, { cwd: "/", env: ENVIRONMENT, stdio, detached: true, ...account });
    running.add(child);
    child.once("close", () => running.delete(child));
    child.on("error", () => undefined);
    try {
      if (child.pid !== undefined) setPriority(child.pid, PRIORITY);
    } catch {
      // It has ended already, or this process may not: it works at the same weight.
    }
    return child;
  }

  /** Ends the process where it and its children hold more than they may; where nothing tells, the kernel's limit is all. */
  function watch(child: ChildProcess): () => void {
    const timer = setInterval(async () => {
      if (child.pid !== undefined && (await heldBy(child.pid)) > MEMORY_MAX_BYTES) kill(child);
    }, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }

  /**
   * @returns null where the process ended without an answer
   * @throws BundlerBusyError where it had no processor to find one in time
   */
  async function ask(job: BundleJob, archives: Buffer[], child: ChildProcess): Promise<Answer | null> {
    let isStarved = false;
    const timer = setTimeout(async () => {
      isStarved = (await processorTime(child.pid!)) * 1_000 < timeLimitMs * KEPT_FROM_IT;
      kill(child);
    }, timeLimitMs);
    const closed = once(child, "close");
    const unwatch = watch(child);
    try {
      const header = Buffer.from(JSON.stringify(job));
      const length = Buffer.alloc(4);
      length.writeUInt32BE(header.length);
      // A process that ends before it has read all says why, or says nothing.
      const sent = pipeline(Readable.from([length, header, ...archives]), child.stdin!).catch(() => undefined);
      const text = await readAll(child.stdio[3] as Readable).catch(() => "");
      await sent;
      if (text !== "") return JSON.parse(text) as Answer;
      if (isStarved) throw new BundlerBusyError("the machine is too busy to bundle it");
      return null;
    } catch (error) {
      if (error instanceof BundlerBusyError) throw error;
      return null;
    } finally {
      clearTimeout(timer);
      unwatch();
      kill(child);
      await closed.catch(() => undefined);
    }
  }

  /** Once: the strictest way of starting that this machine allows. Where there is no answer to an empty job the next is tried. */
  async function probe() {
    const nobody = isRoot ? { uid: NOBODY, gid: NOBODY } : null;
    const ways = [APART, []].flatMap((prefix) =>
      [nobody, ...(nobody ? [null] : [])].map((account) => ({ prefix, account })),
    );
    const empty = {
      packages: [{ name: "probe", version: "0.0.0", folder: "/node_modules/probe", bytes: 0 }],
      maxBytes: 0,
    };
    for (const way of ways) {
      if ((await ask(empty, [], start(way.prefix, way.account)).catch(() => null)) === null) continue;
      if (way.prefix.length === 0)
        log.warn("packages are bundled in a process that has a network: unshare is not to be had");
      if (isRoot && way.account === null) log.warn("packages are bundled under the service's own account");
      return way;
    }
    log.warn("packages cannot be bundled on this machine");
    return { prefix: APART, account: nobody };
  }

  return {
    /** @param packages the first is the one that is wanted; folders as in `node_modules` @throws PackageFault, BundlerBusyError */
    async bundle(packages: readonly PackageArchive[]): Promise<Script> {
      how ??= probe();
      const { prefix, account } = await how;
      const job = {
        packages: packages.map(({ archive, ...placed }) => ({ ...placed, bytes: archive.length })),
        maxBytes: SCRIPT_MAX_BYTES,
      };
      const answer = await ask(
        job,
        packages.map(({ archive }) => archive),
        start(prefix, account),
      );
      if (answer === null)
        throw new PackageFault(
          `bundling it takes more than ${timeLimitMs / 1_000} s or ${MEMORY_MAX_BYTES / 2 ** 20} MB`,
        );
      if ("script" in answer) return answer.script;
      if (answer.reason) log.warn({ package: packages[0]!.name, reason: answer.reason }, "a package could not be read");
      throw new PackageFault(answer.fault);
    },

    /** Ends what runs. */
    stop(): void {
      for (const child of running) kill(child);
    },
  };
}
