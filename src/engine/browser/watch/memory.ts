/**
 * Limits the memory of a browser's processes: of each renderer, and of the shared processes (all others) together. In
 * contrast to the limit of V8's heap, these limits include buffers.
 */
import { runInBackground } from "../../../background.js";
import { RENDERER_MAX_BYTES } from "../../../limits.js";
import { findMemoryFillingRenderer } from "./filler.js";
import { rendererIdleControlGroup } from "./idle-group.js";
import { type MeasuredProcess, signalProcess } from "./processes.js";

/**
 * Memory limit in bytes for all shared processes of a browser (all except renderers) together. At their start, they use
 * 400 MB, because memory that several processes use counts once for each of them.
 */
const SHARED_MAX_BYTES = 1_024 * 1024 * 1024;
/** Memory in bytes of the browser's shared processes (all except renderers) above which the whole browser is ended. */
const SHARED_HARD_MAX_BYTES = 2 * SHARED_MAX_BYTES;
/**
 * Minimum growth in bytes of the shared processes' memory after which the service searches again for the renderer that
 * fills it. These processes return freed memory late, so a search without new growth would find nothing.
 */
const SHARED_STEP_BYTES = 128 * 1024 * 1024;
/**
 * Growth in bytes within FAST_GROWTH_MS that starts a search for the renderer that fills the shared processes, even
 * below SHARED_MAX_BYTES. Only a run that fills the browser causes such growth, and it slows down all other runs.
 */
const SHARED_FAST_GROWTH_BYTES = 192 * 1024 * 1024;
const FAST_GROWTH_MS = 1_000;
/**
 * Minimum age in milliseconds of a process whose growth counts. A younger process grows fast because it is still
 * starting.
 */
const GROWTH_MIN_AGE_MS = 2_000;
/**
 * A renderer that uses at least this CPU time in milliseconds between two checks may be the one that fills the shared
 * processes.
 */
const SUSPECT_MIN_CPU_MS = 20;

export class MemoryWatch {
  /** Time of the last kill of a process in Unix milliseconds; 0 if there was none. */
  lastKillAt = 0;
  private sharedBytes = 0;
  private searchAt = SHARED_MAX_BYTES;
  /** Memory in bytes of each of the browser's shared processes, at the checks within the last FAST_GROWTH_MS. */
  private history: { at: number; byPid: Map<number, number> }[] = [];
  /** Time of the first measurement of each process. The key is the process ID. */
  private firstSeenAt = new Map<number, number>();
  /** CPU time in milliseconds of each renderer at the last check. The key is the process ID. */
  private cpuMsAtLastCheck = new Map<number, number>();
  /** IDs of killed processes that still exist, because a busy machine needs time to free their memory. */
  private killedPids = new Set<number>();

  /**
   * @param group ID of the browser's process group
   * @param endBrowser called when the memory exceeds SHARED_HARD_MAX_BYTES
   */
  constructor(
    private readonly group: number,
    private readonly endBrowser: () => Promise<void>,
  ) {}

  /**
   * True if the browser's shared processes (all except renderers) use so much memory that the browser should be
   * replaced.
   */
  usesTooMuchMemory(): boolean {
    return this.sharedBytes > SHARED_MAX_BYTES;
  }

  /**
   * Kills renderers that use too much memory, and a renderer that fills the memory of the browser's shared processes.
   */
  async check(processes: readonly MeasuredProcess[]): Promise<void> {
    this.killedPids = new Set(processes.flatMap(({ pid }) => (this.killedPids.has(pid) ? [pid] : [])));
    if (this.killedPids.size > 0) this.lastKillAt = Date.now();
    const shared = processes.filter(({ isRenderer }) => !isRenderer);
    this.sharedBytes = shared.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
    const renderers = processes.filter(({ isRenderer }) => isRenderer);
    for (const { pid, residentBytes } of renderers) if (residentBytes > RENDERER_MAX_BYTES) this.killProcess(pid);
    const suspects = this.findSuspects(renderers.filter(({ residentBytes }) => residentBytes <= RENDERER_MAX_BYTES));
    await this.checkShared(shared, suspects);
  }

  private killProcess(pid: number): void {
    this.lastKillAt = Date.now();
    this.killedPids.add(pid);
    signalProcess(pid, "SIGKILL");
    runInBackground(rendererIdleControlGroup.moveProcess(pid, "service"));
  }

  /**
   * True if the browser's shared processes (all except renderers) have grown by SHARED_FAST_GROWTH_BYTES within
   * FAST_GROWTH_MS.
   */
  private growsFast(shared: readonly MeasuredProcess[]): boolean {
    const now = performance.now();
    this.firstSeenAt = new Map(shared.map(({ pid }) => [pid, this.firstSeenAt.get(pid) ?? now]));
    const grownUp = shared.filter(({ pid }) => now - this.firstSeenAt.get(pid)! >= GROWTH_MIN_AGE_MS);
    this.history = this.history.filter(({ at }) => now - at < FAST_GROWTH_MS);
    this.history.push({ at: now, byPid: new Map(grownUp.map(({ pid, residentBytes }) => [pid, residentBytes])) });
    const before = this.history[0]!.byPid;
    const growth = grownUp.map(({ pid, residentBytes }) => residentBytes - (before.get(pid) ?? residentBytes));
    return growth.reduce((sum, bytes) => sum + bytes, 0) >= SHARED_FAST_GROWTH_BYTES;
  }

  /** Returns the renderers that used at least SUSPECT_MIN_CPU_MS since the last check, the busiest first. */
  private findSuspects(renderers: readonly MeasuredProcess[]): number[] {
    const spent = renderers.map(({ pid, cpuMs }) => ({ pid, spent: cpuMs - (this.cpuMsAtLastCheck.get(pid) ?? 0) }));
    this.cpuMsAtLastCheck = new Map(renderers.map((renderer) => [renderer.pid, renderer.cpuMs]));
    const filling = spent.filter((renderer) => renderer.spent >= SUSPECT_MIN_CPU_MS);
    return filling.sort((a, b) => b.spent - a.spent).map(({ pid }) => pid);
  }

  /**
   * Limits the memory that runs use in the browser's shared processes (all except renderers), for example with blobs.
   * Kills the renderer that fills them.
   */
  private async checkShared(shared: readonly MeasuredProcess[], suspects: number[]): Promise<void> {
    const { sharedBytes } = this;
    if (sharedBytes > SHARED_HARD_MAX_BYTES) return this.endBrowser();
    if (!this.growsFast(shared) && sharedBytes < this.searchAt) {
      this.searchAt = Math.max(SHARED_MAX_BYTES, Math.min(this.searchAt, sharedBytes + SHARED_STEP_BYTES));
      return;
    }
    if (suspects.length === 0) return;
    const filler = await findMemoryFillingRenderer(suspects, {
      id: this.group,
      sharedPids: shared.map(({ pid }) => pid),
    });
    if (filler !== null) this.killProcess(filler);
    this.searchAt = sharedBytes + SHARED_STEP_BYTES;
    this.history = [];
  }
}
