/**
 * Processes that the test files of one mocha process share. The check for leftover processes ignores them. Mocha's main process closes
 * its shared processes after the last file.
 */
const closers = new Map<number, () => Promise<void>>();

const serviceStops: (() => Promise<void>)[] = [];

export function shareProcess(pid: number, close: () => Promise<void>): void {
  closers.set(pid, close);
}

export const isShared = (pid: number): boolean => closers.has(pid);

export const sharedCount = (): number => closers.size;

/** Removes a process that has ended by itself from the shared processes. */
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
