/** Shell script that stops the server when this process ends in any way: killed, aborted or out of memory. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * The script waits in `read` until this process closes its end of the pipe. It then stops the server with a fast
 * shutdown, and with an immediate one if that takes too long.
 */
const WATCHDOG_SCRIPT = `
  trap '' INT TERM HUP
  read -r _
  kill -INT "$1"
  for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 "$1" || exit 0; done
  kill -QUIT "$1"`;

export interface Watchdog {
  /** Ends the watchdog. Call it when the server has ended, because its PID may soon be reused. */
  dismiss(): Promise<void>;
}

/** Starts the watchdog for the server with this PID. Without a shell there is none, and the next start stops a server that was left. */
export function watchOver(pid: number): Watchdog {
  // A separate session: Ctrl-C must not end the watchdog before the service.
  const shell = spawn("/bin/sh", ["-c", WATCHDOG_SCRIPT, "svc-watchdog", String(pid)], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // A shell that did not start has ended.
  const ended = once(shell, "close").catch(() => undefined);
  shell.stdin.on("error", () => undefined);
  return {
    async dismiss() {
      shell.kill("SIGKILL");
      await ended;
    },
  };
}
