/** Source of the module "svc/test", which runs tests one after the other, and mocks hosts and the clock, in the sandbox. */
export const TEST_MODULE_SOURCE = `
const tests = [];
export const test = (name, run) => { tests.push({ name, run }); };
const shown = (value) => JSON.stringify(value) ?? String(value);
const same = (a, b) => {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Date || b instanceof Date) return a instanceof Date && b instanceof Date && a.getTime() === b.getTime();
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
};
export const equal = (actual, expected) => {
  if (!same(actual, expected)) throw new Error("expected " + shown(expected) + " (got " + shown(actual) + ")");
};
export const ok = (value, message = "expected a true value") => { if (!value) throw new Error(message); };
export const rejects = async (promiseOrFunction, expected = "") => {
  let error = null;
  try { await (typeof promiseOrFunction === "function" ? promiseOrFunction() : promiseOrFunction); } catch (caught) { error = caught; }
  if (error === null) throw new Error("expected an error (got none)");
  const message = String(error?.message ?? error);
  const isPattern = expected instanceof RegExp;
  if (isPattern ? message.search(expected) < 0 : !message.includes(expected)) throw new Error("expected " + (isPattern ? expected : shown(expected)) + " (got " + shown(message) + ")");
};
const actions = globalThis.Svc?.App?.V3?.Actions;
const [realFetch, RealDate, realRequest] = [globalThis.fetch, globalThis.Date, actions?.request];
const { setTimeout: startTimeout, setInterval: startInterval, clearTimeout: endTimer, clearInterval: endInterval } = globalThis;
// Time of the mocked clock in Unix milliseconds; null while the clock is not mocked. The map timers holds the timers that were set
// meanwhile, by their real IDs.
let clock = null;
const timers = new Map();
const CALLS_MAX = 10000;
const restore = () => {
  globalThis.fetch = realFetch;
  globalThis.Date = RealDate;
  if (realRequest) actions.request = realRequest;
  clock = null;
  timers.clear();
  Object.assign(globalThis, { setTimeout: startTimeout, setInterval: startInterval, clearTimeout: endTimer, clearInterval: endInterval });
};
// A mocked timer also runs when its real time has passed, so that waiting code continues even if the test does not move
// the clock.
const mockTimers = () => {
  const clear = (id) => { timers.delete(id); endTimer(id); };
  globalThis.setTimeout = (call, delay = 0, ...args) => {
    const id = startTimeout(() => { timers.delete(id); call(...args); }, delay);
    timers.set(id, { at: clock + Math.max(0, Number(delay) || 0), call: () => { clear(id); call(...args); } });
    return id;
  };
  globalThis.setInterval = (call, delay = 0, ...args) => {
    const id = startInterval(call, delay, ...args);
    const every = Math.max(1, Number(delay) || 0);
    const timer = { at: clock + every, call: () => { timer.at += every; call(...args); } };
    timers.set(id, timer);
    return id;
  };
  globalThis.clearTimeout = globalThis.clearInterval = clear;
};
// Lets the code that waits for a timer continue, because it may set the next timer.
const settle = () => new Promise((resolve) => { startTimeout(resolve, 0); });
const advance = async (target) => {
  await settle();
  for (let calls = 0; ; calls += 1) {
    const next = [...timers.values()].filter(({ at }) => at <= target).sort((a, b) => a.at - b.at)[0];
    if (clock === null || next === undefined) break;
    if (calls === CALLS_MAX) throw new Error("mock.time called " + CALLS_MAX + " timers; set an earlier time");
    clock = Math.max(clock, next.at);
    next.call();
    await settle();
  }
  if (clock !== null) clock = target;
};
const answerOf = async (answer, request) => {
  const answered = await answer(request);
  return answered instanceof Response ? answered : new Response(JSON.stringify(answered), { headers: { "content-type": "application/json" } });
};
const requested = async (answer, { url, method = "GET", headers, query = {}, body, json, form, responseType = "text" }) => {
  const address = new URL(url);
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, String(value));
  const sent = json === undefined ? (form === undefined ? body : new URLSearchParams(form)) : JSON.stringify(json);
  const response = await answerOf(answer, new Request(address, { method, headers, body: sent }));
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  const content = { text: () => text, json: () => JSON.parse(text), bytes: () => bytes }[responseType]();
  const { status, ok: isOk } = response;
  return { status, headers: Object.fromEntries(response.headers), body: content, ok: isOk, json: () => JSON.parse(text) };
};
// Requests to data sources, media and messages of the test's app are not mocked. The client library sends the run's
// token with these requests.
const isOfService = ({ headers }) => headers.has("auth-token");
export const mock = {
  fetch(answer) {
    globalThis.fetch = (...args) => {
      const request = new Request(...args);
      return isOfService(request) ? realFetch(...args) : answerOf(answer, request);
    };
    if (realRequest) actions.request = (options) => requested(answer, options);
  },
  time(date) {
    const target = new RealDate(date).getTime();
    if (Number.isNaN(target)) throw new Error("mock.time needs a date (got " + shown(date) + ")");
    if (clock !== null && target >= clock) return advance(target);
    if (clock === null) mockTimers();
    clock = target;
    globalThis.Date = class extends RealDate {
      constructor(...args) { super(...(args.length === 0 ? [clock] : args)); }
      static now() { return clock; }
    };
    return Promise.resolve();
  },
};
export async function runAll() {
  const results = [];
  for (const [at, { name, run }] of tests.entries()) {
    try { await run(); results.push({ name, passed: true }); }
    catch (error) {
      const text = String(error?.stack ?? error).slice(0, 4000);
      // The service replaces the code positions in the console by positions in the author's files.
      console.error("svc/test " + at + "\\n" + text);
      results.push({ name, passed: false, error: text });
    }
    restore();
  }
  return results;
}
`;
