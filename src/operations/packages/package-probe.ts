/**
 * Loads a new package in an empty browser page without network access. So a package that cannot load is rejected when an action is saved,
 * and not at each run.
 */
import type { Browsers } from "../../engine/browser/browsers.js";

const LOAD_TIMEOUT_MS = 5_000;
const PROBE_PAGE_ORIGIN = "https://packages.invalid";
const FAILURE_REASON_MAX_CHARACTERS = 300;

/** Returns the reason why a package cannot be loaded; null if it can be loaded, or if this process has no browser to check it. */
export type PackageProbe = (
  script: { name: string; sha256: string; source: string },
  signal: AbortSignal,
) => Promise<string | null>;

export function createPackageProbe(browsers: Pick<Browsers, "run"> | null): PackageProbe {
  return async ({ name, sha256, source }, signal) => {
    if (browsers === null) return null;
    const probeOutcome = await browsers.run({
      mode: "document",
      network: false,
      isolationKey: `package ${sha256}`,
      origin: PROBE_PAGE_ORIGIN,
      source: "async function execute() {}",
      packages: [{ name, source }],
      payload: "{}",
      settings: "{}",
      timeoutMs: LOAD_TIMEOUT_MS,
      mayRequest: () => false,
      signal,
    });
    if (probeOutcome.ok) return null;
    if (probeOutcome.cause === "timeout") return `loading it takes more than ${LOAD_TIMEOUT_MS / 1_000} s`;
    if (probeOutcome.cause === "memory") return "loading it takes too much memory";
    if (probeOutcome.cause !== "script") return null;
    return `it cannot be loaded: ${probeOutcome.error.message.slice(0, FAILURE_REASON_MAX_CHARACTERS).toWellFormed()}`;
  };
}
