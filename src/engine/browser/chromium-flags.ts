/** Flags with which Chromium runs untrusted code: those that isolate it, and those for performance. Also checks the flags of a remote browser. */
import { isIP } from "node:net";

/** V8 heap limit of a page. watch/memory.ts limits buffers outside the heap. */
const HEAP_MAX_MB = 384;

/**
 * Flag that optimizes code later. Each run has new function objects, so optimized code serves only this run. It is worth its cost after a
 * few thousand calls within the run, not because an earlier run on the same thread made many calls.
 */
const OPTIMIZED_LATER =
  "--no-profile-guided-optimization --invocation-count-for-maglev=4000 --invocation-count-for-maglev-osr=1000";

/**
 * Features that are switched off, because with them a document outlives its navigation, sends requests after it, or
 * preloads the next page.
 */
const FEATURES_OFF = [
  "BackForwardCache",
  "FetchLaterAPI",
  "FetchRetry",
  "Prerender2",
  "SpeculationRulesPrefetchFuture",
  "NoStatePrefetch",
  "MediaRouter",
  "OptimizationHints",
  "Translate",
  "AutofillServerCommunication",
  // Reports that a host requests are sent minutes later, during another run.
  "Reporting",
  "NetworkErrorLogging",
];

/**
 * Features that are switched on. The first puts the audio process into a sandbox. With the second, HSTS changes only
 * navigations, not what a page loads, until run-requests.ts clears it.
 */
const FEATURES_ON = ["AudioServiceSandbox", "HstsTopLevelNavigationsOnly"];

/**
 * Features of Blink that are switched off. The check of storage (traces.ts) does not see storage buckets. WebGPU would
 * give code the graphics hardware.
 */
const BLINK_FEATURES_OFF = ["StorageBuckets", "WebGPU"];

/** Enables ShadowRealm: a new global scope for each run at a fifth of the cost of any other. */
const REALM_FLAG = "--harmony-shadow-realm";
/**
 * Flags that make ShadowRealm safe: V8 must collect garbage in one step, because Chromium aborts when an incremental
 * collection ends while a realm's code runs. Objects of the platform are still swept in steps, which are reported when
 * the next collection starts. So the first collection starts late: few runs have two before they wait for anything.
 */
const REALM_SAFETY_FLAGS = ["--no-incremental-marking", "--no-concurrent-sweeping", "--initial-heap-size=96"];

/**
 * Features that are switched off because they are too slow: a new frame host takes a third of the time of a navigation.
 * Document and global are new without it.
 */
const COSTLY_FEATURES = ["RenderDocument"];

const HOST_RULES = "--host-resolver-rules";
const DISABLED_FEATURES_FLAG = "--disable-features";
const MORE_FEATURES = "--enable-features";
const BLINK_FEATURES = "--disable-blink-features";
const SCRIPT_FLAGS = "--js-flags";
const RESOLVE_NO_HOST = "MAP * ~NOTFOUND";
const HEAP_LIMIT = "--max-old-space-size=";

const WITHOUT_SANDBOX = [
  "--no-sandbox",
  "--disable-namespace-sandbox",
  "--disable-seccomp-filter-sandbox",
  "--single-process",
];

const CONTAINMENT_FLAGS = [
  // A context without a proxy port reaches nothing, because no server listens on port 9.
  "--proxy-server=http://127.0.0.1:9",
  "--proxy-bypass-list=<-loopback>",
  // Each build supports only one of the two names. Without the flag, WebRTC sends UDP past the proxy.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
  // With HTTP/2 a WebSocket would use an open tunnel without a check (request-guard.ts).
  "--disable-http2",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--disable-back-forward-cache",
  // No session of a page reports their requests, and a run does not need them.
  "--disable-shared-workers",
  "--block-new-web-contents",
  "--disable-extensions",
  // Without the first the drawing process has no sandbox. With only the second, offscreen canvases still have 3D.
  "--disable-software-rasterizer",
  "--disable-3d-apis",
  // No private key matches this one, so no page can enable a trial feature by a token.
  "--origin-trial-public-key=AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
];

const CONVENIENCE_FLAGS = [
  "--disable-breakpad",
  "--disable-crash-reporter",
  "--disable-default-apps",
  "--disable-gpu",
  "--disable-hang-monitor",
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
  "--mute-audio",
  // Sound may play without a user, because no user can interact with the page.
  "--autoplay-policy=no-user-gesture-required",
  "--no-default-browser-check",
  "--password-store=basic",
  "--use-mock-keychain",
  "--no-startup-window",
];

/** Returns all flags except those for the connection and the profile folder. @param egressHost address at which the proxy ports listen */
export function browserFlags(egressHost: string): string[] {
  return [
    ...CONTAINMENT_FLAGS,
    `${HOST_RULES}=${RESOLVE_NO_HOST} , EXCLUDE ${egressHost}`,
    `${DISABLED_FEATURES_FLAG}=${[...FEATURES_OFF, ...COSTLY_FEATURES].join(",")}`,
    `${MORE_FEATURES}=${FEATURES_ON.join(",")}`,
    `${BLINK_FEATURES}=${BLINK_FEATURES_OFF.join(",")}`,
    `${SCRIPT_FLAGS}=${HEAP_LIMIT}${HEAP_MAX_MB} ${OPTIMIZED_LATER} ${REALM_FLAG} ${REALM_SAFETY_FLAGS.join(" ")}`,
    ...CONVENIENCE_FLAGS,
  ];
}

const nameOf = (flag: string): string => flag.split("=", 1)[0]!;

/** Reads flags as Chromium does: the last flag of a name counts. Chromium reports quoted values only on Windows. */
function readSwitches(commandLine: string): Map<string, string> {
  const parts = commandLine.replaceAll('"', "").split(/ (?=--)/);
  return new Map(parts.map((part) => [nameOf(part).trim(), part.trim()]));
}

const listedValues = (value: string | undefined) => (value ?? "").replace(/^[^=]*=?/, "").split(",");

function allowsOtherHosts(value: string | undefined, egressHost: string): boolean {
  const rules = listedValues(value).map((rule) => rule.trim());
  const otherRules = rules.filter((rule) => rule !== RESOLVE_NO_HOST);
  // Addresses of other runners' proxy ports may be allowed too; host names may not.
  const onlyAddresses = otherRules.every((rule) => isIP(rule.replace(/^EXCLUDE /, "")) !== 0);
  return !(rules.includes(RESOLVE_NO_HOST) && onlyAddresses && otherRules.includes(`EXCLUDE ${egressHost}`));
}

/**
 * Compares a browser's command line with the flags for untrusted code. Returns the missing and the forbidden flags. It
 * may disable more features, allow more addresses and pass more flags to V8.
 */
export function containmentFaults(commandLine: string, egressHost: string, sandbox: boolean): string[] {
  const switches = readSwitches(commandLine);
  const missing = CONTAINMENT_FLAGS.filter((flag) => switches.get(nameOf(flag)) !== flag);
  if (allowsOtherHosts(switches.get(HOST_RULES), egressHost)) {
    missing.push(`${HOST_RULES}=${RESOLVE_NO_HOST} , EXCLUDE ${egressHost}`);
  }
  for (const [flag, features] of [
    [DISABLED_FEATURES_FLAG, FEATURES_OFF],
    [MORE_FEATURES, FEATURES_ON],
    [BLINK_FEATURES, BLINK_FEATURES_OFF],
  ] as const) {
    const named = listedValues(switches.get(flag));
    const lacking = features.filter((feature) => !named.includes(feature));
    if (lacking.length > 0) missing.push(`${flag}=${lacking.join(",")}`);
  }
  if (!switches.get(SCRIPT_FLAGS)?.includes(HEAP_LIMIT)) missing.push(`${SCRIPT_FLAGS}=${HEAP_LIMIT}${HEAP_MAX_MB}`);
  const unsafe = REALM_SAFETY_FLAGS.filter((flag) => commandLine.includes(REALM_FLAG) && !commandLine.includes(flag));
  missing.push(...unsafe.map((flag) => `${SCRIPT_FLAGS}=${flag}`));
  const harmful = ["--disable-web-security", ...(sandbox ? WITHOUT_SANDBOX : [])].filter((flag) => switches.has(flag));
  return [...missing.map((flag) => `lacks ${flag}`), ...harmful.map((flag) => `has ${flag}`)];
}
