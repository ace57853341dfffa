/** Starts processes of the benchmark: load generators and baselines. They run outside of the measured processes. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

export type BenchChild = ChildProcess;

export const startBenchChild = (file: string): BenchChild => fork(new URL(`./${file}`, import.meta.url));

/** Waits for the next message of the child process. @throws Error if the process ends first */
export async function nextMessage<T>(child: BenchChild): Promise<T> {
  const abortController = new AbortController();
  const { signal } = abortController;
  const exited = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`a process of the benchmark exited (got exit code ${code})`);
  });
  // Prevents an unhandled rejection of `exited` after the message has arrived.
  exited.catch(() => undefined);
  try {
    const [message] = await Promise.race([once(child, "message", { signal }), exited]);
    return message as T;
  } finally {
    abortController.abort();
  }
}

/** Starts a server as a child process. Resolves to the URL that it sends once it listens. */
export async function startChildServer(file: string, options?: object): Promise<{ url: string; child: BenchChild }> {
  const child = startBenchChild(file);
  if (options) child.send(options);
  return { url: await nextMessage<string>(child), child };
}
