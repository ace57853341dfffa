/** The process only: the Node version, configuration, signals, exit code. */
const REQUIRED_NODE_MAJOR = 24;

// Before anything else is imported: native modules fail on another version with words that nobody understands.
if (Number(process.versions.node.split(".")[0]) < REQUIRED_NODE_MAJOR) {
  console.error(
    `Node ${REQUIRED_NODE_MAJOR} or later is needed, this is ${process.versions.node}. Start with npm start, which brings it.`,
  );
  process.exit(1);
}

const { ConfigError, readConfig } = await import("./config.js");
const { startService } = await import("./service.js");

try {
  const service = await startService(readConfig());
  let stopping = false;
  const stop = async () => {
    // A second signal means that somebody does not want to wait.
    if (stopping) process.exit(1);
    stopping = true;
    await service.stop();
    process.exit(0);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void stop());
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exit(1);
}
