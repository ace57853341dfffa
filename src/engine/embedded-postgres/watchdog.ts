/** Watchdog: a shell script that stops PostgreSQL when this process ends in any way, for example because it was killed. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** `read` waits for the end of this process, which closes the pipe. If the server then needs over 10 s to stop, SIGQUIT ends it at once. */
const WATCHDOG_SCRIPT = `
  trap '' INT TERM HUP
  read -r _
  kill -INT "$1"
  for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 "$1" || exit 0; done
  kill -QUIT "$1"`;

interface Watchdog {
  /** Ends the watchdog. Call this method after the server has ended, because another process may soon get the server's PID. */
  stop(): Promise<void>;
}

/** Starts the watchdog. Without a shell there is none: the next start of the service then stops a server that was left running. */
export function startPostgresWatchdog(pid: number): Watchdog {
  // The watchdog runs in its own session, so that Ctrl-C does not end it before the service.
  const shell = spawn("/bin/sh", ["-c", WATCHDOG_SCRIPT, "svc-watchdog", String(pid)], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // If the shell could not start, the watchdog counts as ended.
  const ended = once(shell, "close").catch(() => undefined);
  shell.stdin.on("error", () => undefined);
  return {
    async stop() {
      shell.kill("SIGKILL");
      await ended;
    },
  };
}
