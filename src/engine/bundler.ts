/**
 * Bundles untrusted npm packages to a browser script, builds the source files of actions, and reads projects in Git packs. Each job has its
 * own process in the strictest sandbox that the machine supports (bundler/sandbox.ts), with limits for its time, memory and result. Code of
 * packages and actions is not executed.
 */

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import { runInBackground } from "../background.js";
import { BundlerBusyError, PackageError, SandboxUnavailableError } from "./bundler/fault.js";
import type { BundledScript, PackageInTree } from "./bundler/make-script.js";
import { readProcessTreeCpuTime, readProcessTreeMemory } from "./bundler/process-tree.js";
import type { RepositoryReadJob } from "./bundler/project/git-project.js";
import {
  type BundlerSandbox,
  describeMissingProtections,
  findMissingResource,
  listBundlerSandboxes,
  startInSandbox,
  UNSHARE_COMMAND,
} from "./bundler/sandbox.js";
import type { BuiltSourceScript, SourceBuildJob } from "./bundler/source-script.js";

const CHILD_PROGRAM = fileURLToPath(new URL("./bundler/child.js", import.meta.url));

interface BuildLimits {
  timeoutMs: number;
  memoryBytes: number;
}
const BUILD_LIMITS: BuildLimits = { timeoutMs: 30_000, memoryBytes: 512 * 2 ** 20 };
/**
 * Minimum CPU time of a build that reaches the time limit, as a share of this limit. With less CPU time, the machine was too busy, and the
 * package is not at fault.
 */
const MIN_CPU_SHARE = 1 / 2;
const MEMORY_CHECK_MS = 100;
const ERROR_TEXT_MAX_CHARACTERS = 4_096;
const SCRIPT_MAX_BYTES = 5 * 1024 * 1024;
/** Maximum size of a build process's response: 2 MB, and two bytes for each byte of a script, because characters may be escaped. */
const ANSWER_MAX_BYTES = 2 * SCRIPT_MAX_BYTES + 2 * 1024 * 1024;
/** Empty job with which a sandbox is tested. Every build process that can start answers this job. */
const EMPTY_JOB: BundlerJob = {
  packages: [{ name: "probe", version: "0.0.0", folder: "/node_modules/probe", bytes: 0 }],
  maxBytes: 0,
  subpath: "",
};

/** Job on the standard input of a build process. The archives of the packages follow, in the order of `packages`. */
export interface BundlerJob {
  /** If this is set, the process builds these source files of an action instead of packages. */
  source?: SourceBuildJob;
  /** If this is set, the process reads the project in this repository instead of packages. The repository's pack file follows the job. */
  repository?: RepositoryReadJob;
  packages: (PackageInTree & { bytes: number })[];
  maxBytes: number;
  /** Path inside the first of `packages`, such as "/fp" for the import "lodash/fp"; empty for its main module. */
  subpath: string;
}

export type BundlerResponse =
  | { script: BundledScript }
  | { built: BuiltSourceScript }
  | { document: string }
  | { fault: string; reason?: string };

export interface PackageArchive extends PackageInTree {
  /** Gzipped tar file, as the npm registry serves it. */
  archive: Buffer;
}

function collectErrorText(stream: Readable): () => string {
  let errorText = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    errorText = (errorText + chunk).slice(0, ERROR_TEXT_MAX_CHARACTERS);
  });
  return () => errorText;
}

async function readResponseText(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length;
    if (bytes > ANSWER_MAX_BYTES) return "";
    chunks.push(chunk as Buffer);
  }
  return String(Buffer.concat(chunks));
}

const formatSeconds = (ms: number) => `${ms / 1_000} s`;
const formatMegabytes = (bytes: number) => `${bytes / 2 ** 20} MB`;
const createKilledFault = () =>
  new BundlerBusyError("the build process was ended before it finished; the machine may have too little memory");
/**
 * Error codes if a process cannot start under another account. EPERM: the service may not switch accounts. EACCES: the account may not run
 * the program. EINVAL: this container has no ID for the account.
 */
const ACCOUNT_ERROR_CODES: readonly unknown[] = ["EPERM", "EACCES", "EINVAL"];
/** True if the system rejected a process's account. Node throws EPERM and EINVAL, but emits EACCES as an event, which is then the cause. */
function isAccountRejected(error: unknown): boolean {
  const { code, cause } = error as NodeJS.ErrnoException;
  return ACCOUNT_ERROR_CODES.includes(code ?? (cause as NodeJS.ErrnoException | undefined)?.code);
}
const createLimitFault = (limit: string) => new PackageError(`the bundler exceeded its limit of ${limit}`);

interface BundlerOptions {
  log: Logger;
  /** If false, packages are also bundled on machines without user namespaces, where a build process can reach the network. */
  sandbox: boolean;
  /** Path of the program that a build process runs. Only tests set this option. */
  script?: string;
  /** Command that isolates a build process from the network. Only tests set this option. */
  unshareCommand?: readonly string[];
  limits?: BuildLimits;
  /** Returns the CPU time of a process and its children in seconds. */
  measureCpuSeconds?: (pid: number) => Promise<number>;
}

/** Returns the error for a process that has ended without a response, although the service has not killed this process. */
function createUnexpectedEndError(
  { signalCode }: ChildProcess,
  { timeoutMs, memoryBytes }: BuildLimits,
  errorText: string,
): Error {
  // SIGKILL means that the machine had no free memory. At the limits of the sandbox, the kernel uses other signals.
  if (signalCode === "SIGKILL") return createKilledFault();
  const missingResource = signalCode === null ? findMissingResource(errorText) : null;
  if (missingResource !== null)
    return new BundlerBusyError(`the build process cannot start at the moment (${missingResource})`);
  return createLimitFault(`${formatSeconds(timeoutMs)} or ${formatMegabytes(memoryBytes)}`);
}

function killProcess(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // Ignores the error: the process group has already ended.
  }
}

export class Bundler {
  private readonly script = this.options.script ?? CHILD_PROGRAM;
  private readonly unshareCommand = this.options.unshareCommand ?? UNSHARE_COMMAND;
  private readonly limits = this.options.limits ?? BUILD_LIMITS;
  private readonly measureCpuSeconds = this.options.measureCpuSeconds ?? readProcessTreeCpuTime;
  private readonly runningChildren = new Set<ChildProcess>();
  private sandboxPromise: Promise<BundlerSandbox> | null = null;
  private isStopped = false;

  constructor(private readonly options: BundlerOptions) {}

  /** Starts a build process. @throws BundlerBusyError whose cause is the system's error if the process cannot start */
  private async startChild(sandbox: BundlerSandbox): Promise<ChildProcess> {
    if (this.isStopped) throw new BundlerBusyError("the service is stopping");
    const child = startInSandbox(sandbox, this.script);
    if (child.pid === undefined) {
      const [cause] = await once(child, "error");
      throw new BundlerBusyError(
        "the build process cannot start; the machine may have too many processes or open files",
        { cause },
      );
    }
    this.runningChildren.add(child);
    child.once("close", () => this.runningChildren.delete(child));
    return child;
  }

  /**
   * Kills a build process that exceeds its limit of time or memory, and passes the error to `onExceeded`. If the machine does not report
   * the memory of processes, only the kernel limits it. Returns a function that stops watching.
   */
  private watchChildLimits(
    child: ChildProcess,
    { timeoutMs, memoryBytes }: BuildLimits,
    onExceeded: (error: Error) => void,
  ): () => void {
    const { pid } = child;
    if (pid === undefined) return () => undefined;
    const killChild = (error: Error) => {
      onExceeded(error);
      killProcess(child);
    };
    const killAtTimeLimit = async () => {
      const isStarved = (await this.measureCpuSeconds(pid)) * 1_000 < timeoutMs * MIN_CPU_SHARE;
      killChild(
        isStarved
          ? new BundlerBusyError("the machine is too busy to bundle code")
          : createLimitFault(formatSeconds(timeoutMs)),
      );
    };
    const checkMemory = async () => {
      if ((await readProcessTreeMemory(pid)) > memoryBytes) killChild(createLimitFault(formatMegabytes(memoryBytes)));
    };
    const timeLimitTimer = setTimeout(() => runInBackground(killAtTimeLimit()), timeoutMs);
    const memoryTimer = setInterval(() => runInBackground(checkMemory()), MEMORY_CHECK_MS);
    return () => {
      clearTimeout(timeLimitTimer);
      clearInterval(memoryTimer);
    };
  }

  /** Sends a job to a build process, and returns the response. @throws PackageError or BundlerBusyError if the process sends no response */
  private async requestFromChild(
    job: BundlerJob,
    archives: Buffer[],
    child: ChildProcess,
    limits: BuildLimits,
  ): Promise<BundlerResponse> {
    let limitError: Error | null = null;
    const errorText = collectErrorText(child.stderr!);
    // The event "error" means that the process could not start. This counts as an end without a response.
    const closed = once(child, "close").catch(() => undefined);
    const stopWatching = this.watchChildLimits(child, limits, (reason) => {
      limitError = reason;
    });
    try {
      const header = Buffer.from(JSON.stringify(job));
      const lengthPrefix = Buffer.alloc(4);
      lengthPrefix.writeUInt32BE(header.length);
      // Ignores errors of writing. A process that ends before it has read everything sends the reason in its response.
      const sending = pipeline(Readable.from([lengthPrefix, header, ...archives]), child.stdin!).catch(() => undefined);
      const text = await readResponseText(child.stdio[3] as Readable).catch(() => "");
      await sending;
      return JSON.parse(text) as BundlerResponse;
    } catch {
      await closed;
      throw limitError ?? createUnexpectedEndError(child, limits, errorText());
    } finally {
      stopWatching();
      killProcess(child);
      await closed;
    }
  }

  /** Returns false if the sandbox cannot start. @throws BundlerBusyError if the process was killed, or if the machine lacked a resource */
  private async isSandboxWorking(sandbox: BundlerSandbox): Promise<boolean> {
    let child: ChildProcess | undefined;
    try {
      child = await this.startChild(sandbox);
      await this.requestFromChild(EMPTY_JOB, [], child, BUILD_LIMITS);
      return true;
    } catch (error) {
      // If the system rejected the process's account, this sandbox is unusable. Any other reason why a process cannot start is temporary.
      if (child === undefined && isAccountRejected(error)) return false;
      if (error instanceof BundlerBusyError) throw error;
      if (child === undefined || child.signalCode) throw createKilledFault();
      return false;
    }
  }

  /** Returns the strictest sandbox that works on this machine. @throws SandboxUnavailableError if there is none; BundlerBusyError */
  private async findStrictestSandbox(): Promise<BundlerSandbox> {
    const { log, sandbox } = this.options;
    for (const candidate of listBundlerSandboxes(this.unshareCommand, !sandbox)) {
      if (!(await this.isSandboxWorking(candidate))) continue;
      for (const warning of describeMissingProtections(candidate)) log.warn(warning);
      return candidate;
    }
    const unavailableError = new SandboxUnavailableError(!sandbox);
    log.error(unavailableError.message);
    throw unavailableError;
  }

  /** Returns the strictest sandbox. If no sandbox works, the next call searches again. @throws SandboxUnavailableError, BundlerBusyError */
  findSandbox(): Promise<BundlerSandbox> {
    this.sandboxPromise ??= this.findStrictestSandbox().catch((error: unknown) => {
      this.sandboxPromise = null;
      throw error;
    });
    return this.sandboxPromise;
  }

  /** Bundles `packages`, of which the first is the requested one. @throws PackageError, BundlerBusyError, SandboxUnavailableError */
  async bundle(packages: readonly PackageArchive[], subpath = ""): Promise<BundledScript> {
    const child = await this.startChild(await this.findSandbox());
    const job = {
      packages: packages.map(({ archive, ...packageInTree }) => ({ ...packageInTree, bytes: archive.length })),
      maxBytes: SCRIPT_MAX_BYTES,
      subpath,
    };
    const archives = packages.map(({ archive }) => archive);
    const answer = await this.requestFromChild(job, archives, child, this.limits);
    if ("script" in answer) return answer.script;
    if (!("fault" in answer))
      throw new PackageError("the package could not be read; the build process returned no script and no error");
    if (answer.reason)
      this.options.log.warn({ package: packages[0]!.name, reason: answer.reason }, "a package could not be read");
    throw new PackageError(answer.fault);
  }

  /** Builds the source files of an action. @throws PackageError, BundlerBusyError, SandboxUnavailableError */
  async bundleSource(source: SourceBuildJob): Promise<BuiltSourceScript> {
    const child = await this.startChild(await this.findSandbox());
    const answer = await this.requestFromChild(
      { packages: [], maxBytes: 0, subpath: "", source },
      [],
      child,
      this.limits,
    );
    if ("built" in answer) return answer.built;
    if ("fault" in answer && answer.reason)
      this.options.log.warn({ reason: answer.reason }, "an action's source could not be built");
    throw new PackageError("fault" in answer ? answer.fault : "the source files of the action cannot be built");
  }

  /** Returns the manifest (JSON description of an app) of the project in a Git pack. @throws the errors of `bundleSource` */
  async readRepository(repository: RepositoryReadJob, pack: Buffer): Promise<unknown> {
    const child = await this.startChild(await this.findSandbox());
    const answer = await this.requestFromChild(
      { packages: [], maxBytes: 0, subpath: "", repository },
      [pack],
      child,
      this.limits,
    );
    if ("document" in answer) return JSON.parse(answer.document);
    if ("fault" in answer && answer.reason)
      this.options.log.warn({ reason: answer.reason }, "a repository could not be read");
    throw new PackageError("fault" in answer ? answer.fault : "the Git repository cannot be read");
  }

  stop(): void {
    this.isStopped = true;
    for (const child of this.runningChildren) killProcess(child);
  }
}
