/**
 * Makes one script for browsers out of strangers' packages, in a process of its own for each, which is thrown away: in the strictest room
 * that there is (bundler/room.ts), bounded in time, memory and result. Nothing of a package is run there. Knows no registry and no app.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { runInBackground } from "../background.js";
import { BundlerBusyError, PackageFault, UncontainedError } from "./bundler/fault.js";
import type { Placed, Script } from "./bundler/make-script.js";
import { memoryOf, processorTimeOf } from "./bundler/process-tree.js";
import { APART, lacks, type Room, roomsOf, startIn } from "./bundler/room.js";
import type { SourceJob, SourceScript } from "./bundler/source-script.js";

const CHILD = fileURLToPath(new URL("./bundler/child.js", import.meta.url));

/** How long the process may take, and what it and the bundler that it starts may hold together. */
interface Bounds {
  ms: number;
  bytes: number;
}
const BOUNDS: Bounds = { ms: 30_000, bytes: 512 * 2 ** 20 };
/** Who had less of a processor by the end of that time was kept from it by others. */
const KEPT_FROM_IT = 1 / 2;
const LOOK_EVERY_MS = 100;
const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
/** The script, twice over where all of it is escaped, its declarations, and what is told beside it. */
const ANSWER_MAX_BYTES = 2 * SCRIPT_MAX_BYTES + 2 * 1024 * 1024;
/** Whatever starts at all answers it. */
const EMPTY_JOB: BundleJob = {
  packages: [{ name: "probe", version: "0.0.0", folder: "/node_modules/probe", bytes: 0 }],
  maxBytes: 0,
  subpath: "",
};

/** What the process is asked; the archives follow in that order. */
export interface BundleJob {
  /** Set to build an action's own files instead of packages. */
  source?: SourceJob;
  packages: (Placed & { bytes: number })[];
  maxBytes: number;
  /** "" or the path of a module in the first package, with its slash. */
  subpath: string;
}

/** What it answers. */
export type Answer = { script: Script } | { built: SourceScript } | { fault: string; reason?: string };

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

const inSeconds = (ms: number) => `${ms / 1_000} s`;
const inMegabytes = (bytes: number) => `${bytes / 2 ** 20} MB`;
const takesMore = (than: string) => new PackageFault(`bundling it takes more than ${than}`);

export function createBundler(options: {
  log: Logger;
  /** false: where the machine has no namespaces, packages are bundled without. */
  sandbox: boolean;
  /** For tests: another script than the one that reads packages, and another command that takes its network away. */
  script?: string;
  apart?: readonly string[];
  bounds?: Bounds;
  /** Of a process and its children, in seconds. */
  processorTime?: (pid: number) => Promise<number>;
}) {
  const { log, sandbox, script = CHILD, apart = APART, bounds = BOUNDS, processorTime = processorTimeOf } = options;
  const running = new Set<ChildProcess>();
  let known: Promise<Room> | null = null;

  function kill(child: ChildProcess): void {
    try {
      // With the bundler that it has started.
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  }

  function start(room: Room): ChildProcess {
    const child = startIn(room, script);
    running.add(child);
    child.once("close", () => running.delete(child));
    return child;
  }

  /**
   * Ends the process where it and its children take more time or memory than they may; where nothing tells, the kernel's limits are all.
   * @param refuse is told why
   */
  function watch(child: ChildProcess, { ms, bytes }: Bounds, refuse: (why: Error) => void): () => void {
    const { pid } = child;
    if (pid === undefined) return () => undefined;
    const end = (why: Error) => {
      refuse(why);
      kill(child);
    };
    const checkTime = async () => {
      const isStarved = (await processorTime(pid)) * 1_000 < ms * KEPT_FROM_IT;
      end(isStarved ? new BundlerBusyError("the machine is too busy to bundle it") : takesMore(inSeconds(ms)));
    };
    const checkMemory = async () => {
      if ((await memoryOf(pid)) > bytes) end(takesMore(inMegabytes(bytes)));
    };
    const timer = setTimeout(() => runInBackground(checkTime()), ms);
    const looks = setInterval(() => runInBackground(checkMemory()), LOOK_EVERY_MS);
    return () => {
      clearTimeout(timer);
      clearInterval(looks);
    };
  }

  /** @throws PackageFault or BundlerBusyError where the process ends without an answer */
  async function ask(job: BundleJob, archives: Buffer[], child: ChildProcess, most: Bounds): Promise<Answer> {
    let refusal: Error = takesMore(`${inSeconds(most.ms)} or ${inMegabytes(most.bytes)}`);
    const closed = once(child, "close").catch(() => undefined);
    const unwatch = watch(child, most, (why) => {
      refusal = why;
    });
    try {
      const header = Buffer.from(JSON.stringify(job));
      const length = Buffer.alloc(4);
      length.writeUInt32BE(header.length);
      // A process that ends before it has read all says why, or says nothing.
      const sent = pipeline(Readable.from([length, header, ...archives]), child.stdin!).catch(() => undefined);
      const text = await readAll(child.stdio[3] as Readable).catch(() => "");
      await sent;
      return JSON.parse(text) as Answer;
    } catch {
      throw refusal;
    } finally {
      unwatch();
      kill(child);
      await closed;
    }
  }

  async function answers(room: Room): Promise<boolean> {
    try {
      await ask(EMPTY_JOB, [], start(room), BOUNDS);
      return true;
    } catch (error) {
      if (error instanceof BundlerBusyError) throw error;
      return false;
    }
  }

  /** The strictest room that this machine has: the first from which there is an answer. */
  async function find(): Promise<Room> {
    for (const room of roomsOf(apart, !sandbox)) {
      if (!(await answers(room))) continue;
      for (const what of lacks(room)) log.warn(what);
      return room;
    }
    const refusal = new UncontainedError();
    log.error(refusal.message);
    throw refusal;
  }

  /** Looked for once; again where there was none, for an operator may have made one. @throws UncontainedError, BundlerBusyError */
  function room(): Promise<Room> {
    known ??= find().catch((error: unknown) => {
      known = null;
      throw error;
    });
    return known;
  }

  return {
    room,

    /**
     * @param packages the first is the one that is wanted; folders as in `node_modules`
     * @param subpath of the module of it that is loaded, "" for its main one
     * @throws PackageFault, BundlerBusyError, UncontainedError
     */
    async bundle(packages: readonly PackageArchive[], subpath = ""): Promise<Script> {
      const child = start(await room());
      const job = {
        packages: packages.map(({ archive, ...placed }) => ({ ...placed, bytes: archive.length })),
        maxBytes: SCRIPT_MAX_BYTES,
        subpath,
      };
      const archives = packages.map(({ archive }) => archive);
      const answer = await ask(job, archives, child, bounds);
      if ("script" in answer) return answer.script;
      if (!("fault" in answer)) throw new PackageFault("it cannot be read");
      if (answer.reason) log.warn({ package: packages[0]!.name, reason: answer.reason }, "a package could not be read");
      throw new PackageFault(answer.fault);
    },

    /** Builds the files of an action. @throws PackageFault, BundlerBusyError, UncontainedError */
    async bundleSource(source: SourceJob): Promise<SourceScript> {
      const child = start(await room());
      const answer = await ask({ packages: [], maxBytes: 0, subpath: "", source }, [], child, bounds);
      if ("built" in answer) return answer.built;
      if ("fault" in answer && answer.reason)
        log.warn({ reason: answer.reason }, "an action's source could not be built");
      throw new PackageFault("fault" in answer ? answer.fault : "it cannot be built");
    },

    /** Ends what runs. */
    stop(): void {
      for (const child of running) kill(child);
    },
  };
}
