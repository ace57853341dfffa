/**
 * Starts processes that open packages from npm, in the strictest sandbox that the machine supports. The strictest one has no network and no
 * writable files. In each sandbox, CPU time, memory and file descriptors are limited, and the service's environment variables are missing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";

/** At this limit, the kernel sends SIGXCPU, and SIGKILL only a second later. So SIGKILL alone does not mean that the limit was reached. */
const CPU_LIMIT_SECONDS = 30;
/** Limit for the data segment of each process. It is high, because Node reserves more memory than it uses. */
const DATA_SEGMENT_LIMIT_KB = 1024 * 1024;
/** Lower CPU priority (nice value) of build processes, so that runs of actions come first. */
const SANDBOX_NICENESS = 10;
/** Account of the build processes if the service is root. Browsers and image processing use other accounts. */
const UNPRIVILEGED_ACCOUNT = { uid: 64_051, gid: 64_051 };
/** Limits that Node cannot set: no core dump, no written file, limited CPU time, memory and file descriptors. */
const SHELL_LIMITS = `ulimit -c 0; ulimit -f 0; ulimit -S -t ${CPU_LIMIT_SECONDS}; ulimit -H -t ${CPU_LIMIT_SECONDS + 1}; ulimit -d ${DATA_SEGMENT_LIMIT_KB} 2>/dev/null; ulimit -n 64; exec "$0" "$@"`;
/** Starts a process in its own namespaces. There, it reaches no network, and cannot read the memory of the service's process. */
export const UNSHARE_COMMAND: readonly string[] = ["unshare", "--user", "--net", "--"];
/**
 * Removes all rights to write, create and delete files, with Landlock (system calls 444 and 446). Perl can make these calls, but Node
 * cannot.
 */
const LANDLOCK_SCRIPT = `
my $version = syscall 444, 0, 0, 1;
my $rights = pack "Q", 0x1ff2 | ($version > 2 ? 0x4000 : 0);
my $rules = syscall 444, $rights, 8, 0;
die "Landlock: $!\n" if $rules < 0 || syscall(446, $rules, 0) != 0;
exec @ARGV`;
const LANDLOCK_COMMAND = ["--no-new-privs", "perl", "-e", LANDLOCK_SCRIPT];
/** Removes the capabilities of root. A process as root without a user namespace could read the memory of the service. */
const DROP_CAPABILITIES_OPTIONS = ["--bounding-set=-all", "--inh-caps=-all"];
const NODE_FLAGS = ["--max-old-space-size=256", "--no-warnings"];
/** GOMEMLIMIT makes Go (esbuild) collect garbage before the memory limit ends the process. */
const SANDBOX_ENVIRONMENT = { PATH: "/usr/bin:/bin", GOMEMLIMIT: "320MiB", GOMAXPROCS: "2" };

const NO_SPACE_MESSAGE = "No space left on device";
/** Errors of the kernel while it has too few resources (ENOSPC, EAGAIN, ENOMEM, ENFILE). */
const MISSING_RESOURCE_MESSAGES = [
  NO_SPACE_MESSAGE,
  "Resource temporarily unavailable",
  "Cannot allocate memory",
  "Too many open files in system",
];
/** Folder with the maximum numbers of namespaces, one file for each kind. */
const NAMESPACE_LIMITS_FOLDER = "/proc/sys/user";
const NAMESPACE_LIMIT_FILES = ["max_user_namespaces", "max_net_namespaces"];

export interface BundlerSandbox {
  /** Programs that start one after the other before the build process. Each one removes rights. */
  commands: readonly string[];
  isNetworkIsolated: boolean;
  isRestrictedByLandlock: boolean;
  /** Account of the process; null for the account of the service. */
  account: typeof UNPRIVILEGED_ACCOUNT | null;
}

/**
 * Returns the sandboxes to try, the strictest first. `unshareCommand` isolates a process from the network. `allowsNetwork` adds sandboxes
 * without this command.
 */
export function listBundlerSandboxes(unshareCommand: readonly string[], allowsNetwork: boolean): BundlerSandbox[] {
  const isRoot = process.getuid?.() === 0;
  const accounts = isRoot ? [UNPRIVILEGED_ACCOUNT, null] : [null];
  return (allowsNetwork ? [true, false] : [true]).flatMap((isNetworkIsolated) =>
    [true, false].flatMap((isRestrictedByLandlock) =>
      accounts.map((account) => {
        const hasRootCapabilities = isRoot && account === null && !isNetworkIsolated;
        const landlockCommand = [
          "setpriv",
          ...(hasRootCapabilities ? DROP_CAPABILITIES_OPTIONS : []),
          ...LANDLOCK_COMMAND,
        ];
        const commands = [
          ...(isNetworkIsolated ? unshareCommand : []),
          ...(isRestrictedByLandlock ? landlockCommand : []),
        ];
        return { commands, isNetworkIsolated, isRestrictedByLandlock, account };
      }),
    ),
  );
}

/** True if the operator does not allow namespaces. Then the kernel reports the same error as for too many namespaces. */
function areNamespacesDisabled(limitsFolder: string): boolean {
  return NAMESPACE_LIMIT_FILES.some((name) => {
    try {
      return Number(readFileSync(join(limitsFolder, name), "utf8")) === 0;
    } catch {
      // The file is missing, because the kernel has no such limit.
      return false;
    }
  });
}

/** Returns the message in a build process's standard error about a resource that the machine lacks now; null for other errors. */
export function findMissingResource(errorText: string, limitsFolder = NAMESPACE_LIMITS_FOLDER): string | null {
  const reportedMessage = MISSING_RESOURCE_MESSAGES.find((message) => errorText.includes(message));
  if (reportedMessage === undefined || (reportedMessage === NO_SPACE_MESSAGE && areNamespacesDisabled(limitsFolder)))
    return null;
  return reportedMessage;
}

export function describeMissingProtections({
  isNetworkIsolated,
  isRestrictedByLandlock,
  account,
}: BundlerSandbox): string[] {
  const runsAsService = account === null;
  return [
    ...(isNetworkIsolated
      ? []
      : ["packages are bundled in a process that has a network: user namespaces are not available"]),
    ...(runsAsService && process.getuid?.() === 0 ? ["packages are bundled under the service's own account"] : []),
    ...(runsAsService && !isRestrictedByLandlock
      ? ["packages are bundled in a process that may remove the service's files: Landlock or Perl is not available"]
      : []),
  ];
}

/**
 * Starts a script in a sandbox. The script reads its job from standard input and writes its response to file descriptor 3. The caller must
 * read the script's standard error.
 */
export function startInSandbox({ commands, account }: BundlerSandbox, script: string): ChildProcess {
  const args = ["-c", SHELL_LIMITS, ...commands, process.execPath, ...NODE_FLAGS, script];
  const stdio = ["pipe" as const, "ignore" as const, "pipe" as const, "pipe" as const];
  const child = spawn("/bin/sh", args, { cwd: "/", env: SANDBOX_ENVIRONMENT, stdio, detached: true, ...account });
  child.on("error", () => undefined);
  try {
    if (child.pid !== undefined) setPriority(child.pid, SANDBOX_NICENESS);
  } catch {
    // Ignores the error: the process has ended, or the service may not change its priority, which then stays normal.
  }
  return child;
}
