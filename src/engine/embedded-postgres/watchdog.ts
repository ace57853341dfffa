/** A shell of a few lines that stops the server when this process is gone, however it went: killed, aborted, out of memory. Starts no server. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/*
 * The read ends when nobody holds the other end of the pipe any more, which the kernel sees to. Then as a service stops its server:
 * fast, and at once when that takes too long.
 */
const WATCH = `
  trap '' INT TERM HUP
  read -r _
  kill -INT "$1"
  for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 "$1" || exit 0; done
  kill -QUIT "$1"`;

export interface Watchdog {
  /** Ends the watching. To be called once the server has ended: its number may be another's soon. */
  dismiss(): Promise<void>;
}

/** Watches over the server of that pid. Where there is no shell, the next start stops what was left. */
export function watchOver(pid: number): Watchdog {
  // A session of its own: Ctrl-C ends the service, which may take a while, and not what watches it.
  const shell = spawn("/bin/sh", ["-c", WATCH, "svc-watchdog", String(pid)], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  const ended = once(shell, "close").catch(() => undefined);
  shell.stdin.on("error", () => undefined);
  return {
    async dismiss() {
      shell.kill("SIGKILL");
      await ended;
    },
  };
}
