/**
 * Entry point of the service's process: checks the Node version, reads the configuration, handles process signals and sets the exit code.
 */
import type { Service } from "./service.js";

const REQUIRED_NODE = { major: 24, minor: 11 };
const [nodeMajor, nodeMinor] = process.versions.node.split(".").map(Number) as [number, number];

// Runs before the other imports: with another Node version, native modules would fail with a message that does not name the cause.
if (nodeMajor < REQUIRED_NODE.major || (nodeMajor === REQUIRED_NODE.major && nodeMinor < REQUIRED_NODE.minor)) {
  console.error(
    `the service requires Node ${REQUIRED_NODE.major}.${REQUIRED_NODE.minor} or later (got ${process.versions.node}); start it with npm start, which on Linux installs this Node`,
  );
  process.exit(1);
}

const stopController = new AbortController();
let service: Service | null = null;
let signalCount = 0;

/**
 * Handles SIGINT and SIGTERM. The first signal stops the service after its grace period, the second ends the grace period, the third ends
 * the process at once.
 */
function handleSignal(): void {
  signalCount += 1;
  if (signalCount > 2) process.exit(1);
  stopController.abort(new Error("the service was stopped during its start"));
  // Ignores a failure of `stop` here, because the code at the end of this file reports it.
  service?.stop({ now: signalCount === 2 }).catch(() => undefined);
}
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, handleSignal);

const { setGarbageCollectionFlags } = await import("./garbage-collection.js");
setGarbageCollectionFlags();
const { ConfigError, readConfigAndFaults } = await import("./config.js");
const { redirectConsoleToLog, createLog } = await import("./engine/log.js");
const { formatFatalError } = await import("./errors.js");
const { startService } = await import("./service.js");
const { formatStartMessage } = await import("./service/greeting.js");
const { findUnusableValues } = await import("./service/preconditions.js");

const writeError = (error: unknown) => process.stderr.write(`${formatFatalError(error)}\n`);

try {
  const { config, faults } = readConfigAndFaults();
  if (faults.length > 0) throw new ConfigError([...faults, ...(await findUnusableValues(config))]);
  redirectConsoleToLog(createLog(config.logLevel));
  service = await startService(config, { stopRequested: stopController.signal, ownsProcess: true });
  // The greeting is for people, so it is written to standard error. Standard output has only JSON lines for programs.
  if (config.roles.has("api") && config.logLevel !== "silent") process.stderr.write(formatStartMessage(service));
  const stopPromise = new Promise<null>((resolve) => {
    if (stopController.signal.aborted) resolve(null);
    stopController.signal.addEventListener("abort", () => resolve(null));
  });
  const failure = await Promise.race([stopPromise, service.failurePromise]);
  if (failure) writeError(failure);
  await service.stop({ now: failure !== null });
  process.exit(failure ? 1 : 0);
} catch (error) {
  // Lets Node first handle a signal that arrived together with the error, so that a stop is not reported as an error.
  await new Promise((resolve) => setImmediate(resolve));
  if (stopController.signal.aborted) process.exit(0);
  writeError(error);
  process.exit(1);
}
