/** Tests that every run starts in a fresh document. Nothing of an earlier run remains, with the same or another isolation key. */
import { expect } from "chai";
import type { Browsers } from "../../../src/engine/browser/browsers.js";
import { EVALUATION_MODES, modeHasNetwork } from "../../../src/engine/browser/run.js";
import { sampleOf } from "../../harness/samples.js";
import { until } from "../../harness/until.js";
import { type ReachableHost, reachableHost } from "./host.js";
import { failureOf, resultOf, runOf } from "./support.js";

/** Code that returns everything that an earlier run has left behind, or `{}`. */
const PROBE = `const execute = async () => {
  const found = {};
  const note = (name, value) => { if (value) found[name] = value; };
  note("global", globalThis.leftover);
  note("lexical", (() => { try { return leftoverLexical; } catch { return null; } })());
  note("prototype", Object.prototype.leftover || Array.prototype.leftover);
  note("intrinsic", JSON.stringify.leftover || fetch.leftover);
  note("dom", document.body.children.length);
  note("windowName", window.name);
  note("hash", location.hash + location.search);
  note("history", history.length - 1);
  note("historyState", history.state);
  note("scrollRestoration", history.scrollRestoration !== "auto");
  note("navigationEntries", navigation.entries().length - 1);
  note("navigationState", navigation.currentEntry.getState());
  note("navigationFrom", navigation.activation?.from?.getState());
  note("cookie", document.cookie);
  note("localStorage", localStorage.length);
  note("sessionStorage", sessionStorage.length);
  note("indexedDB", (await indexedDB.databases()).length);
  note("caches", (await caches.keys()).length);
  note("serviceWorkers", (await navigator.serviceWorker.getRegistrations()).length);
  note("opener", window.opener ? 1 : 0);
  note("frames", window.length);
  note("locks", (await navigator.locks.query()).held.length);
  const files = [];
  for await (const name of (await navigator.storage.getDirectory()).keys()) files.push(name);
  note("files", files.length);
  if (navigator.storageBuckets) note("buckets", (await navigator.storageBuckets.keys()).length);
  const heard = new Promise((resolve) => {
    new BroadcastChannel("leftover").onmessage = (event) => resolve(event.data);
    setTimeout(resolve, 120, null);
  });
  note("broadcast", await heard);
  const markup = new XMLSerializer().serializeToString(document).replace(/ xmlns="[^"]*"/, "");
  if (markup !== '<!DOCTYPE html><html><head><meta charset="utf-8" /></head><body></body></html>') note("markup", markup);
  note("policy", await fetch("data:,").then(() => "", String));
  note("image policy", await new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve("");
    image.onerror = () => resolve("blocked");
    image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
  }));
  note("referrer", new Request("/").referrerPolicy + document.referrer);
  note("base", document.baseURI !== location.origin + "/");
  note("hints", document.featurePolicy.getAllowlistForFeature("ch-ua-arch").join() !== location.origin);
  note("domain", document.domain !== location.hostname);
  return found;
};`;

const POLICY = "<meta http-equiv=content-security-policy content=\"connect-src 'none'; img-src 'none'\">";

/** Ways to set a policy, base URL or domain that a document inherits if it replaces this document without a navigation. */
const POLICY_LEFTOVERS: [string, string][] = (
  [
    ["a policy", `document.head.innerHTML = POLICY`],
    ["a policy, removed again", "document.head.innerHTML = POLICY; document.head.innerHTML = ''"],
    [
      "a policy in a group, removed again",
      "const g = document.createElement('div'); g.innerHTML = POLICY; document.head.append(g); g.remove(); g.innerHTML = ''",
    ],
    [
      "a policy in the existing element",
      "const m = document.querySelector('meta'); m.content = \"connect-src 'none'\"; m.httpEquiv = 'content-security-policy'; m.removeAttribute('http-equiv')",
    ],
    [
      "a policy in an element with a prefix",
      "const m = document.createElementNS('http://www.w3.org/1999/xhtml', 'x:meta'); m.content = \"connect-src 'none'\"; m.httpEquiv = 'content-security-policy'; document.head.append(m); m.remove()",
    ],
    [
      "a policy in a new head",
      "const h = document.createElement('head'); h.innerHTML = POLICY; document.head.replaceWith(h)",
    ],
    [
      "a policy in a new root",
      "const h = document.createElement('html'); h.innerHTML = POLICY; document.documentElement.replaceWith(h)",
    ],
    ["a policy in a written document", "document.open(); document.write(POLICY); document.close()"],
    ["a policy set by a timer", "setInterval(() => { document.head.innerHTML = POLICY }, 0)"],
    [
      "a policy set while the page goes",
      "for (const type of ['pagehide', 'unload', 'beforeunload']) addEventListener(type, () => { document.head.innerHTML = POLICY })",
    ],
    [
      "a hidden policy",
      "document.head.innerHTML = POLICY; Object.defineProperty(document, 'head', { value: null }); document.documentElement.remove()",
    ],
    ["a referrer policy", "document.head.innerHTML = '<meta name=referrer content=no-referrer>'"],
    ["a referrer policy in the body", "document.body.innerHTML = '<meta name=referrer content=unsafe-url>'"],
    [
      "a delegation of client hints",
      "document.head.innerHTML = '<meta http-equiv=delegate-ch content=\"sec-ch-ua-arch https://left.test\"><meta http-equiv=accept-ch content=sec-ch-ua-arch>'",
    ],
    [
      "a base address",
      "document.head.append(Object.assign(document.createElement('base'), { href: 'https://left.test/' }))",
    ],
    ["a domain", "try { document.domain = 'actions.internal' } catch {}"],
  ] as const
).map(([name, code]) => [name, `const POLICY = ${JSON.stringify(POLICY)}; ${code}`]);

const EVIL_URL = "javascript:'<p>left<script>leftover = 1; document.title = 1</script>'";

/** Ways in which code can replace its document: before, during and instead of the service's navigation. */
const REPLACED_DOCUMENTS: [string, string][] = (
  [
    ["at the end", "location.href = EVIL_URL"],
    ["in a timer", "setTimeout(() => { location.href = EVIL_URL }, 0)"],
    ["in many timers", "for (let at = 0; at < 40; at += 1) setTimeout(() => { location.href = EVIL_URL }, at)"],
    ["all the time", "setInterval(() => { location.href = EVIL_URL }, 0)"],
    ["while the page goes", "addEventListener('pagehide', () => { location.href = EVIL_URL })"],
    [
      "by a link",
      "const a = Object.assign(document.createElement('a'), { href: EVIL_URL }); document.body.append(a); setInterval(() => a.click(), 0)",
    ],
    [
      "by a form",
      "const f = Object.assign(document.createElement('form'), { action: EVIL_URL }); document.body.append(f); setInterval(() => f.submit(), 0)",
    ],
    ["by open", "setInterval(() => open(EVIL_URL, '_self'), 0)"],
    [
      "with prevented navigations",
      "navigation.addEventListener('navigate', (event) => event.preventDefault()); navigation.addEventListener('navigate', (event) => event.intercept())",
    ],
    [
      "with a listener of loads",
      "setInterval(() => { document.open(); document.close(); dispatchEvent(new Event('load')) }, 0); addEventListener('load', () => { leftover = 1 })",
    ],
    [
      "again and again by writing",
      "setInterval(() => { document.open(); document.write('<p>left'); document.close() }, 0)",
    ],
  ] as const
).map(([name, code]) => [`a document replaced ${name}`, `const EVIL_URL = ${JSON.stringify(EVIL_URL)}; ${code}`]);

const LEFTOVERS: [string, string][] = [
  ["globals", "globalThis.leftover = 1; var leftoverVar = 1"],
  [
    "lexical bindings",
    "(0, eval)('globalThis.x = 1'); const s = document.createElement('script'); s.text = 'let leftoverLexical = 1'; document.head.append(s)",
  ],
  ["changed prototypes", "Object.prototype.leftover = 1; Array.prototype.leftover = 1"],
  ["changed intrinsics", "JSON.stringify = Object.assign(() => '0', { leftover: 1 }); fetch.leftover = 1"],
  ["elements", "document.body.append(document.createElement('p'))"],
  ["window.name", "window.name = 'left'"],
  ["a changed address", "history.replaceState({ left: 1 }, '', '/?a=1#b')"],
  ["a state of its history", "history.replaceState({ left: 1 }, '')"],
  [
    "a state of its history, set while the page goes",
    "addEventListener('pagehide', () => history.replaceState({ left: 1 }, ''))",
  ],
  ["a state of its navigation", "navigation.updateCurrentEntry({ state: { left: 1 } })"],
  ["a wish where to scroll", "history.scrollRestoration = 'manual'"],
  ["history entries", "for (let i = 0; i < 5; i += 1) history.pushState({ left: i }, '', '/p' + i)"],
  ["a script cookie", "document.cookie = 'left=1; path=/; max-age=9999; secure'"],
  ["a cookie for a parent domain", "document.cookie = 'left=1; domain=actions.internal; path=/; max-age=9999'"],
  ["a cookie store entry", "await cookieStore.set('left', '1')"],
  ["localStorage", "localStorage.setItem('left', '1')"],
  ["sessionStorage", "sessionStorage.setItem('left', '1')"],
  [
    "storage written while the page goes",
    "addEventListener('pagehide', () => { localStorage.setItem('l', '1'); sessionStorage.setItem('l', '1') }); addEventListener('unload', () => localStorage.setItem('m', '1'))",
  ],
  [
    "IndexedDB",
    "await new Promise((r) => { const o = indexedDB.open('left'); o.onupgradeneeded = () => o.result.createObjectStore('s'); o.onsuccess = r })",
  ],
  [
    "an open IndexedDB transaction",
    "const o = indexedDB.open('left', 7); o.onupgradeneeded = () => o.result.createObjectStore('s')",
  ],
  ["Cache storage", "await (await caches.open('left')).put('/x', new Response('left'))"],
  ["an empty cache", "await caches.open('left')"],
  [
    "private files",
    "const d = await navigator.storage.getDirectory(); const f = await d.getFileHandle('left', { create: true }); const w = await f.createWritable(); await w.write('x'); await w.close()",
  ],
  [
    "an empty private file",
    "const d = await navigator.storage.getDirectory(); await d.getFileHandle('left', { create: true })",
  ],
  [
    "a storage bucket",
    "const b = navigator.storageBuckets && await navigator.storageBuckets.open('left'); if (b) await b.caches.open('c')",
  ],
  ["timers", "const left = new BroadcastChannel('leftover'); setInterval(() => left.postMessage('timer'), 5)"],
  [
    "a microtask chain over tasks",
    "const left = new BroadcastChannel('leftover'); let told = 0; const again = () => { if (performance.now() > told + 5) { told = performance.now(); left.postMessage('task') } const c = new MessageChannel(); c.port1.onmessage = again; c.port2.postMessage(0) }; again()",
  ],
  [
    "a dedicated worker",
    'new Worker(URL.createObjectURL(new Blob([\'const left = new BroadcastChannel("leftover"); setInterval(() => left.postMessage("worker"), 5)\']))); await new Promise((r) => setTimeout(r, 50))',
  ],
  [
    "a frame",
    "const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.eval('const left = new BroadcastChannel(\"leftover\"); setInterval(() => left.postMessage(\"frame\"), 5)')",
  ],
  ["a held lock", "navigator.locks.request('left', () => new Promise(() => {}))"],
  [
    "a download",
    "const a = document.createElement('a'); a.href = 'data:application/octet-stream,x'; a.download = 'x'; a.click()",
  ],
  ["a replaced document", "document.open(); document.write('<p>left<script>leftover = 1</script>'); document.close()"],
  ["a navigation under way", "location.href = 'https://app-1.actions.internal/elsewhere'"],
  ["a reload under way", "location.reload()"],
  ["a fragment", "location.hash = 'left'"],
  ...POLICY_LEFTOVERS,
  ...REPLACED_DOCUMENTS,
  ["a busy loop that begins after the end", "setTimeout(() => { for (;;); }, 0)"],
];

describe("isolation", () => {
  let host: ReachableHost;
  let browsers: Browsers;
  let requests: string[] = [];
  let url: string;

  before(async () => {
    host = await reachableHost((request, response) => {
      requests.push(`${request.url} ${request.headers.cookie ?? ""}`);
      response.setHeader("Access-Control-Allow-Origin", "https://app-1.actions.internal");
      response.setHeader("Access-Control-Allow-Credentials", "true");
      response.setHeader("Cache-Control", "public, max-age=9999");
      response.setHeader("Set-Cookie", "third=1; Max-Age=9999; SameSite=None; Secure");
      response.end(String(requests.length));
    });
    ({ browsers, url } = host);
  });
  beforeEach(() => {
    requests = [];
  });
  after(() => host.stop());

  it("shows a first run no data of earlier ones", async () => {
    expect(await resultOf(browsers, PROBE)).to.deep.equal({});
  });

  it("shows no host object, in the document and in a frame of its origin", async () => {
    const code = `const hostsOf = (scope) => Reflect.ownKeys(scope).filter((key) => /svc|harness/i.test(String(key)));
      const inPackage = hostsOf(globalThis);
      const execute = async () => {
        const frame = document.createElement("iframe");
        document.body.append(frame);
        return [inPackage, hostsOf(globalThis), hostsOf(frame.contentWindow)];
      };`;
    expect(await resultOf(browsers, code)).to.deep.equal([[], [], []]);
  });

  for (const [title, code] of sampleOf(LEFTOVERS, 0, 12)) {
    it(`leaves nothing for the next run of ${title}`, async () => {
      const outcome = await browsers.run(runOf(`const execute = async () => { ${code} }`));
      // A run fails if its code leaves the page. All other code must succeed, because otherwise it would have left nothing behind.
      if (!outcome.ok) expect(outcome.error.message).to.include("left its page");
      expect(await resultOf(browsers, PROBE)).to.deep.equal({});
    });
  }

  it("lets no run open a window or a shared worker, which would live longer than its page", async () => {
    const code = `const execute = async () => [typeof SharedWorker, open("/popup"), open("about:blank", "_blank", "noopener")]`;
    expect(await resultOf(browsers, code)).to.deep.equal(["undefined", null, null]);
  });

  it("ends a run that registers a service worker", async () => {
    const code =
      "const execute = async () => { await navigator.serviceWorker.register('/x'); await new Promise(() => {}) }";
    expect((await failureOf(browsers, code)).cause).to.equal("script");
    expect(await resultOf(browsers, PROBE)).to.deep.equal({});
  });

  it("leaves nothing of a run that failed", async () => {
    await failureOf(browsers, "leftover = 1; localStorage.a = 1; const execute = async () => { throw 1 }");
    expect(await resultOf(browsers, PROBE)).to.deep.equal({});
  });

  it("shows one key nothing of another, in sequence and concurrently", async () => {
    const leavingCode = `const execute = async () => {
      localStorage.setItem("a", "1"); document.cookie = "a=1; domain=actions.internal";
      new BroadcastChannel("leftover").postMessage("x");
      const left = new BroadcastChannel("leftover");
      setInterval(() => left.postMessage("x"), 5);
      await new Promise((resolve) => setTimeout(resolve, 400));
    }`;
    const other = { isolationKey: "2:master", origin: "https://app-2.actions.internal" };
    const copy = { isolationKey: "1:production" };
    const [, seenByOtherApp, seenByCopy] = await Promise.all([
      resultOf(browsers, leavingCode),
      resultOf(browsers, PROBE, other),
      resultOf(browsers, PROBE, copy),
    ]);
    expect([seenByOtherApp, seenByCopy]).to.deep.equal([{}, {}]);
    expect(await resultOf(browsers, PROBE, other)).to.deep.equal({});
    expect(await resultOf(browsers, PROBE, copy)).to.deep.equal({});
  });

  it("shows two concurrent runs of one key nothing of each other", async () => {
    const leavingCode = `const execute = async () => {
      localStorage.setItem("a", "1");
      const left = new BroadcastChannel("leftover");
      setInterval(() => left.postMessage("x"), 5);
      await new Promise((resolve) => setTimeout(resolve, 400));
    }`;
    const [, seen] = await Promise.all([resultOf(browsers, leavingCode), resultOf(browsers, PROBE)]);
    expect(seen).to.deep.equal({});
  });

  it("is not slowed by a run that blocks its own process", async () => {
    const abort = new AbortController();
    const blocked = browsers.run(runOf("async function execute() { for (;;); }", { signal: abort.signal }));
    await until(() => browsers.countBrowsers().serving === 1);
    expect(await resultOf(browsers, "const execute = async () => 1")).to.equal(1);
    expect(await resultOf(browsers, "const execute = async () => 2", { isolationKey: "3:master" })).to.equal(2);
    abort.abort();
    expect(await blocked).to.deep.include({ ok: false, cause: "cancelled" });
  });

  for (const mode of EVALUATION_MODES.filter(modeHasNetwork)) {
    it(`reports for each run in mode ${mode} only its own hosts`, async () => {
      const code = `const execute = async () => { await fetch("${url}/a"); await fetch("${url}/b") }`;
      for (let run = 0; run < 2; run += 1) {
        const hosts: string[] = [];
        await resultOf(browsers, code, { mode, onHost: (host) => hosts.push(host) });
        expect(hosts).to.deep.equal([url.slice("http://".length)]);
      }
    });
  }
});
