/** Command-line flags with which Chromium runs untrusted code. Also checks the flags of a remote browser. */
import { isIP } from "node:net";

/** Maximum V8 heap of a page in megabytes. watch/memory.ts limits all memory of the page, including buffers outside of the heap. */
export const HEAP_MAX_MB = 384;

/** Makes V8 optimize later: the functions of each run are new, so only a function that is called thousands of times is worth the cost. */
const LATE_OPTIMIZATION_FLAGS =
  "--no-profile-guided-optimization --invocation-count-for-maglev=4000 --invocation-count-for-maglev-osr=1000";

/** Features that a remote browser must also disable or enable. */
const REQUIRED_FEATURES = {
  // With these features, Chromium could send requests, or keep a page alive, after the end of a run.
  "--disable-features": [
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
  ],
  // `HstsTopLevelNavigationsOnly` prevents HSTS entries of one run from changing the requests of the next run.
  "--enable-features": ["AudioServiceSandbox", "HstsTopLevelNavigationsOnly"],
  // The check for stored data (leftovers.ts) cannot see storage buckets. WebGPU would give code access to the graphics hardware.
  "--disable-blink-features": ["StorageBuckets", "WebGPU"],
};

/** ShadowRealm gives each run new JavaScript globals at low cost (docs/internals/adr.md, 4). */
const REALM_FLAG = "--harmony-shadow-realm";
/** Chromium aborts if an incremental garbage collection ends while ShadowRealm code runs. So V8 collects in one step, and rarely. */
const REALM_SAFETY_FLAGS = ["--no-incremental-marking", "--no-concurrent-sweeping", "--initial-heap-size=96"];

/** `RenderDocument` takes a third of each navigation's time. Without it, a navigation still creates a new document and new globals. */
const OPTIONAL_FEATURES: Readonly<Record<string, string>> = { "--disable-features": ",RenderDocument" };

const HOST_RULES_FLAG = "--host-resolver-rules";
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
  // Proxy of browser contexts that have no proxy of their own. Nothing listens on port 9, so all their requests fail.
  "--proxy-server=http://127.0.0.1:9",
  "--proxy-bypass-list=<-loopback>",
  // Both flags prevent WebRTC from sending UDP past the proxy. Each build of Chromium supports only one of the names.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
  // With HTTP/2, a WebSocket would use an open tunnel to the host, and so bypass the check in run-requests.ts.
  "--disable-http2",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--disable-back-forward-cache",
  // DevTools does not report the requests of a shared worker, so the service could not check them.
  "--disable-shared-workers",
  "--block-new-web-contents",
  "--disable-extensions",
  // Without `--disable-software-rasterizer`, the GPU process has no sandbox.
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
  // Without this flag, `Network.clearBrowserCache` takes 1.6 ms more CPU time after each run that sends a request.
  "--disable-gpu-shader-disk-cache",
  "--disable-hang-monitor",
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
  "--mute-audio",
  "--autoplay-policy=no-user-gesture-required",
  "--no-default-browser-check",
  "--password-store=basic",
  "--use-mock-keychain",
  "--no-startup-window",
];

/** Returns all flags except those for DevTools and the profile folder. Pages send requests through proxies at the address `egressHost`. */
export function createBrowserFlags(egressHost: string): string[] {
  return [
    ...CONTAINMENT_FLAGS,
    `${HOST_RULES_FLAG}=${BLOCK_ALL_HOSTS_RULE} , EXCLUDE ${egressHost}`,
    ...Object.entries(REQUIRED_FEATURES).map(
      ([flag, features]) => `${flag}=${features.join(",")}${OPTIONAL_FEATURES[flag] ?? ""}`,
    ),
    `${V8_OPTIONS_FLAG}=${HEAP_LIMIT_FLAG}${HEAP_MAX_MB} ${LATE_OPTIMIZATION_FLAGS} ${REALM_FLAG} ${REALM_SAFETY_FLAGS.join(" ")}`,
    ...CONVENIENCE_FLAGS,
  ];
}

const getFlagName = (flag: string): string => flag.split("=", 1)[0]!;

/** Returns the flags by name. Like Chromium, uses the last value of a repeated flag. Removes quotes, which occur only on Windows. */
function parseFlags(commandLine: string): Map<string, string> {
  const parts = commandLine.replaceAll('"', "").split(/ (?=--)/);
  return new Map(parts.map((part) => [getFlagName(part).trim(), part.trim()]));
}

const splitFlagValues = (value: string | undefined) => (value ?? "").replace(/^[^=]*=?/, "").split(",");

function allowsOtherHosts(value: string | undefined, egressHost: string): boolean {
  const rules = splitFlagValues(value).map((rule) => rule.trim());
  const otherRules = rules.filter((rule) => rule !== BLOCK_ALL_HOSTS_RULE);
  // The rules may exclude more IP addresses (proxies of other service processes), but no host names.
  const hasOnlyAddresses = otherRules.every((rule) => isIP(rule.replace(/^EXCLUDE /, "")) !== 0);
  return !(rules.includes(BLOCK_ALL_HOSTS_RULE) && hasOnlyAddresses && otherRules.includes(`EXCLUDE ${egressHost}`));
}

/** Returns texts such as `lacks --disable-quic` or `has --no-sandbox`. The list is empty if the browser's command line is safe. */
export function findUnsafeBrowserFlags(commandLine: string, egressHost: string, sandbox: boolean): string[] {
  const flagByName = parseFlags(commandLine);
  const missingFlags = CONTAINMENT_FLAGS.filter((flag) => flagByName.get(getFlagName(flag)) !== flag);
  if (allowsOtherHosts(flagByName.get(HOST_RULES_FLAG), egressHost)) {
    missingFlags.push(`${HOST_RULES_FLAG}=${BLOCK_ALL_HOSTS_RULE} , EXCLUDE ${egressHost}`);
  }
  for (const [flag, features] of Object.entries(REQUIRED_FEATURES)) {
    const listedFeatures = splitFlagValues(flagByName.get(flag));
    const missingFeatures = features.filter((feature) => !listedFeatures.includes(feature));
    if (missingFeatures.length > 0) missingFlags.push(`${flag}=${missingFeatures.join(",")}`);
  }
  if (!flagByName.get(V8_OPTIONS_FLAG)?.includes(HEAP_LIMIT_FLAG))
    missingFlags.push(`${V8_OPTIONS_FLAG}=${HEAP_LIMIT_FLAG}${HEAP_MAX_MB}`);
  for (const flag of commandLine.includes(REALM_FLAG) ? REALM_SAFETY_FLAGS : [])
    if (!commandLine.includes(flag)) missingFlags.push(`${V8_OPTIONS_FLAG}=${flag}`);
  const harmfulFlags = ["--disable-web-security", ...(sandbox ? SANDBOX_DISABLING_FLAGS : [])].filter((flag) =>
    flagByName.has(flag),
  );
  return [...missingFlags.map((flag) => `lacks ${flag}`), ...harmfulFlags.map((flag) => `has ${flag}`)];
}
