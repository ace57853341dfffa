/** Processes of the benchmark: callers and baselines, outside of the measured event loops. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

export type Child = ChildProcess;

/** Starts the module `file` of this folder as a process. */
export const startChild = (file: string): Child => fork(new URL(`./${file}`, import.meta.url));

/** The next message of the child. @throws Error if it ends instead */
export async function messageOf<T>(child: Child): Promise<T> {
  const over = new AbortController();
  const { signal } = over;
  const ended = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`a process of the bench ended with ${code}`);
  });
  // Only the race handles it.
  ended.catch(() => undefined);
  try {
    const [message] = await Promise.race([once(child, "message", { signal }), ended]);
    return message as T;
  } finally {
    over.abort();
  }
}

/** A server in a separate process, which prints its URL once it listens. */
export async function startServer(file: string, wanted?: object): Promise<{ url: string; child: Child }> {
  const child = startChild(file);
  if (wanted) child.send(wanted);
  return { url: await messageOf<string>(child), child };
}
