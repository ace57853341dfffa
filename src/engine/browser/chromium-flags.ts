/**
 * The switches with which a Chromium may hold strangers' code: those that contain it, and those that only keep it quiet; and what
 * a command line lacks of the first. Starts nothing.
 */
import { isIP } from "node:net";

/** Heap of one page's script; buffers outside it are watched from /proc (memory-watch.ts). */
const HEAP_MAX_MB = 384;

/**
 * A run's functions are new in each, so that what is optimized of them serves that run alone: it is worth its cost where they are called a
 * few thousand times, and not because they were in an earlier run of the same thread.
 */
const OPTIMIZED_LATER =
  "--no-profile-guided-optimization --invocation-count-for-maglev=4000 --invocation-count-for-maglev-osr=1000";

/** What would let a document outlive its navigation, send after it, or work ahead of one. */
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
  // Reports that a host has asked for are sent minutes later, in the time of another run.
  "Reporting",
  "NetworkErrorLogging",
];

/**
 * Where a run's sound is mixed; without it that process has no sandbox. And what hosts say of their transport, which goes with what is
 * cached (run-requests.ts), changes until then where a page goes, and nothing that it loads.
 */
const FEATURES_ON = ["AudioServiceSandbox", "HstsTopLevelNavigationsOnly"];

/** The storage of the first is kept outside what an origin is said to use, where traces.ts looks; the second draws in 3D. */
const BLINK_FEATURES_OFF = ["StorageBuckets", "WebGPU"];

/** A global scope of its own for each run of the language, at a fifth of any other's cost; where it is missing workers take its place. */
const REALMS = "--harmony-shadow-realm";
/**
 * V8 marks and sweeps the whole of its garbage in one go. Of steps it would report the last to Chromium, which traps on it where a realm's code
 * runs: a realm cannot say where such a report goes. The platform's own objects are swept in steps all the same, of which is told where the next
 * collection begins: so the first one comes late, that few runs have two before they wait for anything.
 */
const REALM_SAFETY = ["--no-incremental-marking", "--no-concurrent-sweeping", "--initial-heap-size=96"];

/** A new frame host for every navigation cost a third of it; the document and its global are fresh without. */
const COSTLY_FEATURES = ["RenderDocument"];

const HOST_RULES = "--host-resolver-rules";
const FEATURES = "--disable-features";
const MORE_FEATURES = "--enable-features";
const BLINK_FEATURES = "--disable-blink-features";
const SCRIPT_FLAGS = "--js-flags";
const NOTHING_RESOLVES = "MAP * ~NOTFOUND";
const HEAP_LIMIT = "--max-old-space-size=";

const WITHOUT_SANDBOX = [
  "--no-sandbox",
  "--disable-namespace-sandbox",
  "--disable-seccomp-filter-sandbox",
  "--single-process",
];

const CONTAINMENT = [
  // Without a lane of its own (see Lane) a context reaches nothing: port 9 refuses.
  "--proxy-server=http://127.0.0.1:9",
  "--proxy-bypass-list=<-loopback>",
  // Which of the two spellings counts differs between builds; with the other alone WebRTC sends UDP past the proxy.
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--disable-quic",
  // A WebSocket would go through a tunnel that is open already, unasked (request-guard.ts).
  "--disable-http2",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--disable-back-forward-cache",
  // Their requests are seen by no page's session; a run has no use for either.
  "--disable-shared-workers",
  "--block-new-web-contents",
  "--disable-extensions",
  // Without the first the process that draws has no sandbox; the second alone leaves 3D to canvases off the screen.
  "--disable-software-rasterizer",
  "--disable-3d-apis",
  // No key has this number, so that no page can ask by a token for what is still on trial.
  "--origin-trial-public-key=AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
];

const COMFORT = [
  "--disable-breakpad",
  "--disable-crash-reporter",
  "--disable-default-apps",
  "--disable-gpu",
  "--disable-hang-monitor",
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
  "--mute-audio",
  // Nobody is there to touch the page before it may sound.
  "--autoplay-policy=no-user-gesture-required",
  "--no-default-browser-check",
  "--password-store=basic",
  "--use-mock-keychain",
  "--no-startup-window",
];

/** Every switch but those that say how the browser is reached and where it keeps its files. `egressHost`: where the lanes listen. */
export function browserFlags(egressHost: string): string[] {
  return [
    ...CONTAINMENT,
    `${HOST_RULES}=${NOTHING_RESOLVES} , EXCLUDE ${egressHost}`,
    `${FEATURES}=${[...FEATURES_OFF, ...COSTLY_FEATURES].join(",")}`,
    `${MORE_FEATURES}=${FEATURES_ON.join(",")}`,
    `${BLINK_FEATURES}=${BLINK_FEATURES_OFF.join(",")}`,
    `${SCRIPT_FLAGS}=${HEAP_LIMIT}${HEAP_MAX_MB} ${OPTIMIZED_LATER} ${REALMS} ${REALM_SAFETY.join(" ")}`,
    ...COMFORT,
  ];
}

const nameOf = (flag: string): string => flag.split("=", 1)[0]!;

/** As Chromium itself reads them: the last of several counts. Values are not quoted where it tells of them, but on Windows. */
function readSwitches(commandLine: string): Map<string, string> {
  const parts = commandLine.replaceAll('"', "").split(/ (?=--)/);
  return new Map(parts.map((part) => [nameOf(part).trim(), part.trim()]));
}

const listed = (value: string | undefined) => (value ?? "").replace(/^[^=]*=?/, "").split(",");

function resolvesOthers(value: string | undefined, egressHost: string): boolean {
  const rules = listed(value).map((rule) => rule.trim());
  const others = rules.filter((rule) => rule !== NOTHING_RESOLVES);
  // Another runner's lanes may be let through beside ours; names may not.
  const onlyAddresses = others.every((rule) => isIP(rule.replace(/^EXCLUDE /, "")) !== 0);
  return !(rules.includes(NOTHING_RESOLVES) && onlyAddresses && others.includes(`EXCLUDE ${egressHost}`));
}

/**
 * What a browser's command line lacks to contain strangers' code, and what it must not have: each in an operator's words. Further
 * features may be off, further addresses let through and further flags given to V8.
 */
export function containmentFaults(commandLine: string, egressHost: string, sandbox: boolean): string[] {
  const switches = readSwitches(commandLine);
  const missing = CONTAINMENT.filter((flag) => switches.get(nameOf(flag)) !== flag);
  if (resolvesOthers(switches.get(HOST_RULES), egressHost)) {
    missing.push(`${HOST_RULES}=${NOTHING_RESOLVES} , EXCLUDE ${egressHost}`);
  }
  for (const [flag, features] of [
    [FEATURES, FEATURES_OFF],
    [MORE_FEATURES, FEATURES_ON],
    [BLINK_FEATURES, BLINK_FEATURES_OFF],
  ] as const) {
    const named = listed(switches.get(flag));
    const lacking = features.filter((feature) => !named.includes(feature));
    if (lacking.length > 0) missing.push(`${flag}=${lacking.join(",")}`);
  }
  if (!switches.get(SCRIPT_FLAGS)?.includes(HEAP_LIMIT)) missing.push(`${SCRIPT_FLAGS}=${HEAP_LIMIT}${HEAP_MAX_MB}`);
  const unsafe = REALM_SAFETY.filter((flag) => commandLine.includes(REALMS) && !commandLine.includes(flag));
  missing.push(...unsafe.map((flag) => `${SCRIPT_FLAGS}=${flag}`));
  const harmful = ["--disable-web-security", ...(sandbox ? WITHOUT_SANDBOX : [])].filter((flag) => switches.has(flag));
  return [...missing.map((flag) => `lacks ${flag}`), ...harmful.map((flag) => `has ${flag}`)];
}
