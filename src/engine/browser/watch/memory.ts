/** Limits the memory, including buffers, of each renderer of a browser, and of the browser's shared processes (all others) together. */
import { runInBackground } from "../../../background.js";
import { RENDERER_MEMORY_MAX_BYTES } from "../../../limits.js";
import { findMemoryFillingRenderer } from "./filler.js";
import { rendererIdleControlGroup } from "./idle-group.js";
import { type MeasuredProcess, signalProcess } from "./processes.js";

/** Memory limit of all shared processes together. They start at about 400 MB, because memory that they share counts several times. */
const SHARED_MAX_BYTES = 1_024 * 1024 * 1024;
/** If the shared processes use more, the browser is ended. */
const SHARED_HARD_MAX_BYTES = 2 * SHARED_MAX_BYTES;
/** After a search for the renderer that fills the memory, the next search starts after this growth. */
const SHARED_STEP_BYTES = 128 * 1024 * 1024;
/** This growth within FAST_GROWTH_MS starts a search even below SHARED_MAX_BYTES, because fast growth slows down all other runs. */
const SHARED_FAST_GROWTH_BYTES = 192 * 1024 * 1024;
const FAST_GROWTH_MS = 1_000;
/** A renderer that used less CPU time since the last check is not suspected of filling the shared processes. */
const SUSPECT_MIN_CPU_MS = 10;

export class MemoryWatch {
  /** Unix time in milliseconds at which a killed process last existed; 0 if none was killed. */
  lastKillAt = 0;
  private sharedBytes = 0;
  private searchAtBytes = SHARED_MAX_BYTES;
  private history: { at: number; bytesByPid: Map<number, number> }[] = [];
  private cpuMsAtLastCheck = new Map<number, number>();
  /** IDs of killed processes that still exist, because a busy machine needs time to free their memory. */
  private killedPids = new Set<number>();

  constructor(
    private readonly group: number,
    private readonly endBrowser: () => Promise<void>,
  ) {}

  usesTooMuchMemory(): boolean {
    return this.sharedBytes > SHARED_MAX_BYTES;
  }

  async check(processes: readonly MeasuredProcess[]): Promise<void> {
    this.killedPids = new Set(processes.flatMap(({ pid }) => (this.killedPids.has(pid) ? [pid] : [])));
    if (this.killedPids.size > 0) this.lastKillAt = Date.now();
    const shared = processes.filter(({ isRenderer }) => !isRenderer);
    this.sharedBytes = shared.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
    const renderers = processes.filter(({ isRenderer }) => isRenderer);
    for (const { pid, residentBytes } of renderers)
      if (residentBytes > RENDERER_MEMORY_MAX_BYTES) this.killProcess(pid);
    const suspects = this.findSuspects(
      renderers.filter(({ residentBytes }) => residentBytes <= RENDERER_MEMORY_MAX_BYTES),
    );
    await this.checkSharedProcesses(shared, suspects);
  }

  private killProcess(pid: number): void {
    this.lastKillAt = Date.now();
    this.killedPids.add(pid);
    signalProcess(pid, "SIGKILL");
    runInBackground(rendererIdleControlGroup.moveProcess(pid, "service"));
  }

  private growsFast(shared: readonly MeasuredProcess[]): boolean {
    const now = performance.now();
    this.history = this.history.filter(({ at }) => now - at < FAST_GROWTH_MS);
    this.history.push({ at: now, bytesByPid: new Map(shared.map(({ pid, residentBytes }) => [pid, residentBytes])) });
    const bytesByPidBefore = this.history[0]!.bytesByPid;
    // The growth of a process younger than FAST_GROWTH_MS does not count, because it is still starting.
    const growth = shared.map(({ pid, residentBytes }) => residentBytes - (bytesByPidBefore.get(pid) ?? residentBytes));
    return growth.reduce((sum, bytes) => sum + bytes, 0) >= SHARED_FAST_GROWTH_BYTES;
  }

  private findSuspects(renderers: readonly MeasuredProcess[]): number[] {
    const usages = renderers.map(({ pid, cpuMs }) => ({ pid, usedMs: cpuMs - (this.cpuMsAtLastCheck.get(pid) ?? 0) }));
    this.cpuMsAtLastCheck = new Map(renderers.map((renderer) => [renderer.pid, renderer.cpuMs]));
    const busyRenderers = usages.filter(({ usedMs }) => usedMs >= SUSPECT_MIN_CPU_MS);
    return busyRenderers.sort((a, b) => b.usedMs - a.usedMs).map(({ pid }) => pid);
  }

  private async checkSharedProcesses(shared: readonly MeasuredProcess[], suspects: number[]): Promise<void> {
    const { sharedBytes } = this;
    if (sharedBytes > SHARED_HARD_MAX_BYTES) return this.endBrowser();
    if (!this.growsFast(shared) && sharedBytes < this.searchAtBytes) {
      this.searchAtBytes = Math.max(SHARED_MAX_BYTES, Math.min(this.searchAtBytes, sharedBytes + SHARED_STEP_BYTES));
      return;
    }
    if (suspects.length === 0) return;
    const fillingPid = await findMemoryFillingRenderer(suspects, {
      id: this.group,
      sharedPids: shared.map(({ pid }) => pid),
    });
    if (fillingPid !== null) this.killProcess(fillingPid);
    this.searchAtBytes = sharedBytes + SHARED_STEP_BYTES;
    this.history = [];
  }
}
