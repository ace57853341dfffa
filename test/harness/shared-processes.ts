/**
 * Processes that the test files of one mocha process share. The check for leftover processes ignores them. A worker of
 * mocha ends them when it exits; otherwise they are closed after the last file.
 */
const closers = new Map<number, () => Promise<void>>();

const serviceStops: (() => Promise<void>)[] = [];

export function shareProcess(pid: number, close: () => Promise<void>): void {
  closers.set(pid, close);
}

export const isShared = (pid: number): boolean => closers.has(pid);

export const sharedCount = (): number => closers.size;

/** Removes a process from the shared ones. Call it after the process has ended by itself. */
export function unshareProcess(pid: number): void {
  closers.delete(pid);
}

/** Calls `stop` after the last test file. */
export function stopAfterLastFile(stop: () => Promise<void>): void {
  serviceStops.push(stop);
}

/** Ends all shared services and processes. */
export async function closeSharedProcesses(): Promise<void> {
  await Promise.all(serviceStops.splice(0).map((stop) => stop()));
  await Promise.all([...closers.values()].map((close) => close()));
  closers.clear();
}
