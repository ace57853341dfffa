/**
 * The room that strangers' packages are read in: a process without environment, network and any file that it may write, as nobody where the
 * service is root, with so much processor time, memory and descriptors. Knows the script that runs there by its path alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setPriority } from "node:os";

const CPU_LIMIT_SECONDS = 30;
/** What the kernel lets each of its processes set aside: Node does that with more than it uses. */
const DATA_LIMIT_KB = 1024 * 1024;
/** Runs come first. */
const PRIORITY = 10;
/** An account of nobody, for a service that is root; other numbers than browsers and pictures have. */
const NOBODY = { uid: 64_051, gid: 64_051 };
/** A shell sets the limits, for Node cannot: no core, no written file, so much processor time, memory and descriptors. */
const LIMITED = `ulimit -c 0; ulimit -f 0; ulimit -t ${CPU_LIMIT_SECONDS}; ulimit -d ${DATA_LIMIT_KB} 2>/dev/null; ulimit -n 64; exec "$0" "$@"`;
/** In namespaces of its own it has no network but an empty one, and cannot read what the service's process holds, its environment neither. */
export const APART: readonly string[] = ["unshare", "--user", "--net", "--"];
/**
 * Landlock takes it every right to write, make and remove files, the service's own too, whose account it may have. Node cannot ask for that,
 * Debian's Perl can: landlock_create_ruleset (444) with the rights of its first version, and to truncate from its third on, and
 * landlock_restrict_self (446).
 */
const SEAL = `
my $version = syscall 444, 0, 0, 1;
my $rights = pack "Q", 0x1ff2 | ($version > 2 ? 0x4000 : 0);
my $rules = syscall 444, $rights, 8, 0;
exit 1 if $rules < 0 || syscall(446, $rules, 0) != 0;
exec @ARGV`;
const SEALED = ["--no-new-privs", "perl", "-e", SEAL];
/** Root outside a user namespace could read what the service's process holds, its environment too. */
const POWERLESS = ["--bounding-set=-all", "--inh-caps=-all"];
const NODE_FLAGS = ["--max-old-space-size=256", "--no-warnings"];
/** The bundler's garbage is collected before the limit ends it. */
const ENVIRONMENT = { PATH: "/usr/bin:/bin", GOMEMLIMIT: "320MiB", GOMAXPROCS: "2" };

/** One way of starting the process, and what it has of what it should. */
export interface Room {
  /** Commands that run the next one with less. */
  walls: readonly string[];
  isApart: boolean;
  isSealed: boolean;
  /** null: the service's own. */
  account: typeof NOBODY | null;
}

/** The strictest first. @param apart the command that takes the network away; @param mayBeOpen whether it may be missing */
export function roomsOf(apart: readonly string[], mayBeOpen: boolean): Room[] {
  const isRoot = process.getuid?.() === 0;
  const accounts = isRoot ? [NOBODY, null] : [null];
  return (mayBeOpen ? [true, false] : [true]).flatMap((isApart) =>
    [true, false].flatMap((isSealed) =>
      accounts.map((account) => {
        const isPowerful = isRoot && account === null && !isApart;
        const sealed = ["setpriv", ...(isPowerful ? POWERLESS : []), ...SEALED];
        const walls = [...(isApart ? apart : []), ...(isSealed ? sealed : [])];
        return { walls, isApart, isSealed, account };
      }),
    ),
  );
}

/** What the log says of a room that lacks something. */
export function lacks({ isApart, isSealed, account }: Room): string[] {
  const isOwn = account === null;
  return [
    ...(isApart ? [] : ["packages are bundled in a process that has a network: user namespaces are not to be had"]),
    ...(isOwn && process.getuid?.() === 0 ? ["packages are bundled under the service's own account"] : []),
    ...(isOwn && !isSealed
      ? ["packages are bundled in a process that may remove the service's files: Landlock or Perl is not to be had"]
      : []),
  ];
}

/** Starts a script of ours there; it is asked on standard input, and answers on descriptor 3. */
export function startIn({ walls, account }: Room, script: string): ChildProcess {
  const args = ["-c", LIMITED, ...walls, process.execPath, ...NODE_FLAGS, script];
  const stdio = ["pipe" as const, "ignore" as const, "ignore" as const, "pipe" as const];
  const child = spawn("/bin/sh", args, { cwd: "/", env: ENVIRONMENT, stdio, detached: true, ...account });
  child.on("error", () => undefined);
  try {
    if (child.pid !== undefined) setPriority(child.pid, PRIORITY);
  } catch {
    // It has ended already, or this process may not: it works at the same weight.
  }
  return child;
}
