/** Command-line flags with which Chromium runs untrusted code. Also checks the flags of a remote browser. */
import { isIP } from "node:net";

/** Maximum V8 heap of a page in megabytes. watch/memory.ts limits memory outside the heap, such as buffers. */
const HEAP_MAX_MB = 384;

/** Makes V8 optimize later: each run has new function objects, so only functions that it calls thousands of times are worth the cost. */
const LATE_OPTIMIZATION_FLAGS =
  "--no-profile-guided-optimization --invocation-count-for-maglev=4000 --invocation-count-for-maglev-osr=1000";

/** With these features, a page would stay alive or send requests after the next navigation, or would preload the next page. */
const DISABLED_FEATURES = [
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
  // With Reporting, the browser would send reports minutes later, during another run.
  "Reporting",
  "NetworkErrorLogging",
];

/** `HstsTopLevelNavigationsOnly` prevents HSTS entries of one run from changing the requests of the next run. */
const ENABLED_FEATURES = ["AudioServiceSandbox", "HstsTopLevelNavigationsOnly"];

/** The check for stored data (leftovers.ts) cannot see storage buckets. WebGPU would give code access to the graphics hardware. */
const DISABLED_BLINK_FEATURES = ["StorageBuckets", "WebGPU"];

/** ShadowRealm gives each run new JavaScript globals at a fifth of the cost of any other method (docs/internals/adr.md, 4). */
const REALM_FLAG = "--harmony-shadow-realm";
/**
 * Chromium aborts if an incremental garbage collection ends while code in a ShadowRealm runs, so V8 collects in one step. Chromium sweeps
 * its own objects in steps, which the next collection ends. The large initial heap makes a second collection during one call rare.
 */
const REALM_SAFETY_FLAGS = ["--no-incremental-marking", "--no-concurrent-sweeping", "--initial-heap-size=96"];

/**
 * `RenderDocument` creates a new frame host at each navigation, which takes a third of the navigation's time. Without this feature, a
 * navigation still creates a new document and new globals.
 */
const DISABLED_SLOW_FEATURES = ["RenderDocument"];

const HOST_RULES_FLAG = "--host-resolver-rules";
const DISABLED_FEATURES_FLAG = "--disable-features";
const ENABLED_FEATURES_FLAG = "--enable-features";
const DISABLED_BLINK_FEATURES_FLAG = "--disable-blink-features";
const V8_OPTIONS_FLAG = "--js-flags";
const BLOCK_ALL_HOSTS_RULE = "MAP * ~NOTFOUND";
const HEAP_LIMIT_FLAG = "--max-old-space-size=";

const SANDBOX_DISABLING_FLAGS = [
  "--no-sandbox",
  "--disable-namespace-sandbox",
  "--disable-seccomp-filter-sandbox",
  "--single-process",
];

const CONTAINMENT_FLAGS = [
  // Default proxy of browser contexts without a proxy port. Nothing listens on port 9, so all their requests fail.
  "--proxy-server=http://127.0.0.1:9",
  "--proxy-bypass-list=<-loopback>",
  // Both flags prevent WebRTC from sending UDP past the proxy. Each build of Chromium supports only one of the names.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
  // With HTTP/2, a WebSocket would use an open tunnel to the host, and so bypass the check in request-guard.ts.
  "--disable-http2",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--disable-back-forward-cache",
  // No DevTools session reports the requests of a shared worker.
  "--disable-shared-workers",
  "--block-new-web-contents",
  "--disable-extensions",
  // Without `--disable-software-rasterizer`, the GPU process has no sandbox. Without `--disable-3d-apis`, offscreen canvases draw in 3D.
  "--disable-software-rasterizer",
  "--disable-3d-apis",
  // No private key exists for this public key, so no page can enable an origin trial with a token.
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
  // Lets pages play sound without a click.
  "--autoplay-policy=no-user-gesture-required",
  "--no-default-browser-check",
  "--password-store=basic",
  "--use-mock-keychain",
  "--no-startup-window",
];

/** All flags except those for DevTools and the profile folder. `egressHost` is the address at which the proxy ports listen. */
export function createBrowserFlags(egressHost: string): string[] {
  return [
    ...CONTAINMENT_FLAGS,
    `${HOST_RULES_FLAG}=${BLOCK_ALL_HOSTS_RULE} , EXCLUDE ${egressHost}`,
    `${DISABLED_FEATURES_FLAG}=${[...DISABLED_FEATURES, ...DISABLED_SLOW_FEATURES].join(",")}`,
    `${ENABLED_FEATURES_FLAG}=${ENABLED_FEATURES.join(",")}`,
    `${DISABLED_BLINK_FEATURES_FLAG}=${DISABLED_BLINK_FEATURES.join(",")}`,
    `${V8_OPTIONS_FLAG}=${HEAP_LIMIT_FLAG}${HEAP_MAX_MB} ${LATE_OPTIMIZATION_FLAGS} ${REALM_FLAG} ${REALM_SAFETY_FLAGS.join(" ")}`,
    ...CONVENIENCE_FLAGS,
  ];
}

const getFlagName = (flag: string): string => flag.split("=", 1)[0]!;

/** Parses a command line as Chromium does: the last of several equal flags counts. Quotes occur only on Windows. */
function readSwitches(commandLine: string): Map<string, string> {
  const parts = commandLine.replaceAll('"', "").split(/ (?=--)/);
  return new Map(parts.map((part) => [getFlagName(part).trim(), part.trim()]));
}

const splitFlagValues = (value: string | undefined) => (value ?? "").replace(/^[^=]*=?/, "").split(",");

function allowsOtherHosts(value: string | undefined, egressHost: string): boolean {
  const rules = splitFlagValues(value).map((rule) => rule.trim());
  const otherRules = rules.filter((rule) => rule !== BLOCK_ALL_HOSTS_RULE);
  // Rules may exclude further IP addresses, for proxy ports of other processes of the service, but no host names.
  const onlyAddresses = otherRules.every((rule) => isIP(rule.replace(/^EXCLUDE /, "")) !== 0);
  return !(rules.includes(BLOCK_ALL_HOSTS_RULE) && onlyAddresses && otherRules.includes(`EXCLUDE ${egressHost}`));
}

/**
 * Returns the required flags that a browser's command line lacks, and the forbidden flags that it has; empty if the browser is safe.
 * The browser may disable more features, allow more IP addresses, and pass more flags to V8.
 */
export function findUnsafeBrowserFlags(commandLine: string, egressHost: string, sandbox: boolean): string[] {
  const switches = readSwitches(commandLine);
  const missing = CONTAINMENT_FLAGS.filter((flag) => switches.get(getFlagName(flag)) !== flag);
  if (allowsOtherHosts(switches.get(HOST_RULES_FLAG), egressHost)) {
    missing.push(`${HOST_RULES_FLAG}=${BLOCK_ALL_HOSTS_RULE} , EXCLUDE ${egressHost}`);
  }
  for (const [flag, features] of [
    [DISABLED_FEATURES_FLAG, DISABLED_FEATURES],
    [ENABLED_FEATURES_FLAG, ENABLED_FEATURES],
    [DISABLED_BLINK_FEATURES_FLAG, DISABLED_BLINK_FEATURES],
  ] as const) {
    const named = splitFlagValues(switches.get(flag));
    const lacking = features.filter((feature) => !named.includes(feature));
    if (lacking.length > 0) missing.push(`${flag}=${lacking.join(",")}`);
  }
  if (!switches.get(V8_OPTIONS_FLAG)?.includes(HEAP_LIMIT_FLAG))
    missing.push(`${V8_OPTIONS_FLAG}=${HEAP_LIMIT_FLAG}${HEAP_MAX_MB}`);
  const unsafe = REALM_SAFETY_FLAGS.filter((flag) => commandLine.includes(REALM_FLAG) && !commandLine.includes(flag));
  missing.push(...unsafe.map((flag) => `${V8_OPTIONS_FLAG}=${flag}`));
  const harmful = ["--disable-web-security", ...(sandbox ? SANDBOX_DISABLING_FLAGS : [])].filter((flag) =>
    switches.has(flag),
  );
  return [...missing.map((flag) => `lacks ${flag}`), ...harmful.map((flag) => `has ${flag}`)];
}
