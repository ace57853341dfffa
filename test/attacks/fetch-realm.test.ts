/**
 * Tests consecutive runs of one app on one thread. They borrow platform functions such as `fetch` from this thread. No run may reach the
 * thread's own objects, end the page, or leave data for the next run.
 */
import { expect } from "chai";
import { THREAD_LIMITS } from "../../src/engine/browser/pages/harness.js";
import type { EvaluationMode } from "../../src/engine/browser/run.js";
import { resultOf } from "../engine/browser/support.js";
import { longTest, sampleOf } from "../harness/samples.js";
import { useFetchRealm } from "./fetch-realm.js";
import { tryNatives } from "./realm-natives.js";

/** Number of runs, more than one thread executes. */
const RUN_COUNT = THREAD_LIMITS.runsMax + 20;
const CALLS_PER_RUN = 30;
describe("consecutive runs on a thread with fetch", () => {
  const { browsers, here, execute, service, SERVICE_CALL_CODE, next, lost, arrived } = useFetchRealm();

  it("see nothing of each other, over more runs than a thread serves", async () => {
    const source = execute(
      "return found",
      `const holders = [globalThis, Headers, Response, Blob, FormData, URL, DOMException, crypto, crypto.subtle, Object.getPrototypeOf(new Response("a").body)]
         .flatMap((one) => [one, one.prototype ?? Object.getPrototypeOf(one)]);
       const found = holders.filter((one) => "left" in one).map(String);
       for (const one of holders) one.left = 1;
       setInterval(() => fetch(url + "/left"), 1); setTimeout(() => console.log("left"), 5); new Response("left").text().then(() => fetch(url + "/left"));
       new Response("left").body.getReader().read().then(() => fetch(url + "/left"))`,
    );
    for (let count = 0; count < RUN_COUNT; count += 1)
      expect(await resultOf(browsers(), source, here)).to.deep.equal([]);
    expect(lost).to.deep.equal([]);
  });

  for (const [title, unfinishedWork] of [
    ["a request", "fetch(url + '/late').then(() => fetch(url + '/left'), () => fetch(url + '/left'))"],
    ["one that goes on when the page has gone", "fetch(url + '/late', { keepalive: true, method: 'POST', body: 'x' })"],
    ["one that is sent elsewhere", "fetch(url + '/moved', { keepalive: true })"],
    ["a body that is sent", "fetch(url + '/late', { method: 'POST', body: 'x'.repeat(1e6) })"],
    ["a timer that asks", "setInterval(() => fetch(url + (over ? '/left' : '/meanwhile')), 20)"],
    ...(
      [
        ["what WebCrypto works on, again and again", 1e3],
        ["what WebCrypto works on for long", 4e5],
      ] as const
    ).map(([title, iterations]) => [
      title,
      `const keyed = crypto.subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']);
       const algorithm = { name: 'PBKDF2', hash: 'SHA-256', salt: new Uint8Array(16), iterations: ${iterations} };
       (function again() { keyed.then((key) => crypto.subtle.deriveBits(algorithm, key, 256)).then(() => { fetch(url + (over ? '/left' : '/meanwhile')); again() }) })()`,
    ]),
    [
      "a hundred requests",
      "for (let at = 0; at < 100; at += 1) fetch(url + '/late').catch(() => fetch(url + '/left'))",
    ],
  ] as const) {
    it(`are not affected by unfinished work of the previous run: ${title}`, async () => {
      const body = `${unfinishedWork}; await new Promise((resolve) => { setTimeout(resolve, 10) }); over = true`;
      await resultOf(browsers(), execute(body, "let over = false"), here);
      const wait =
        "await new Promise((resolve) => { setTimeout(resolve, 300) }); return (await fetch(url + '/next')).text()";
      expect(await resultOf(browsers(), execute(wait), here)).to.equal("answered");
      expect(arrived.filter((url) => /left|elsewhere/.test(url))).to.deep.equal([]);
    });
  }

  const garbageCodes = [
    ["bytes", "new Uint8Array(15e5).fill(1)"],
    ["objects", "new Array(131_072).fill(kept.length + 0.5)"],
    ["texts", "JSON.stringify(new Array(2e5).fill(kept.length))"],
  ] as const;
  for (const [title, made] of sampleOf(garbageCodes, 1, 3)) {
    it(`continue if V8 collects all garbage of their thread: ${title}`, async () => {
      const code = `const kept = []; while (kept.length < 200) kept.push(${made}); return kept.length`;
      const seen: EvaluationMode[] = [];
      expect(await resultOf(browsers(), execute(code), { ...here, onMode: (kind) => void seen.push(kind) })).to.equal(
        200,
      );
      expect([seen, lost]).to.deep.equal([["network-isolate"], []]);
    });
  }

  longTest("cannot crash their page by any platform function, arguments or exceptions in callbacks", async () => {
    const tryNativesFrom = (from: number | null) =>
      resultOf(browsers(), execute(`return (${tryNatives})(url, ${from}, ${CALLS_PER_RUN})`), here);
    const names = (await tryNativesFrom(null)) as string[];
    expect(names).to.include.members([
      "fetch",
      "Headers.prototype.get",
      "AbortSignal.any",
      "AbortSignal.prototype.onabort(set)",
    ]);
    const starts = names.map((_name, at) => at).filter((at) => at % CALLS_PER_RUN === 0);
    for (const from of sampleOf(starts, 0, 8)) {
      expect(await tryNativesFrom(from), names.slice(from, from + CALLS_PER_RUN).join(" ")).to.be.above(CALLS_PER_RUN);
      expect(lost, names.slice(from, from + CALLS_PER_RUN).join(" ")).to.deep.equal([]);
    }
    expect(await next()).to.equal("answered");
  });

  it("cannot reach the thread's own globals through values from outside", async () => {
    const source = execute(
      `const scopes = [];
       const look = (value) => { for (let one = value; one !== null && one !== undefined; one = Object.getPrototypeOf(one)) {
         const maker = Object.getOwnPropertyDescriptor(one, "constructor")?.value?.constructor;
         try { if (typeof maker === "function" && maker("return globalThis")() !== globalThis) scopes.push(String(one)) } catch {} } };
       const { apply } = Reflect; const seen = [];
       Function.prototype.call = function () { seen.push(this); }; Function.prototype.apply = function () { seen.push(this); };
       Function.prototype.bind = function () { seen.push(this); return this };
       Reflect.apply = (...values) => { seen.push(...values); return apply(...values) };
       Array.prototype.push = function (value) { seen[seen.length] = value; return this.length };
       Error.prepareStackTrace = (error, sites) => { for (const site of sites) for (const name of ["getThis", "getFunction"]) {
         try { seen[seen.length] = site[name]() } catch {} } return "" };
       const response = await fetch(url + "/one"); new Error("own").stack;
       const way = globalThis.__svcService; const answer = ${SERVICE_CALL_CODE};
       new Promise((resolve) => { setTimeout(() => { new Error("timed").stack; resolve() }, 1) });
       const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-GCM", true, ["encrypt"]);
       const iv = { get byteLength() { return 12 } }; const algorithm = { name: "AES-GCM", get iv() { seen[seen.length] = this; return new Uint8Array(12) } };
       const sealed = await crypto.subtle.encrypt(algorithm, key, new Uint8Array(1));
       for (const value of [crypto, crypto.subtle, crypto.subtle.digest, key, key.algorithm, key.usages, sealed, await crypto.subtle.exportKey("jwk", key)]) look(value);
       for (const values of [["x", key], [{}, key, iv], [algorithm, iv, iv]]) await crypto.subtle.encrypt(...values).catch(look);
       try { crypto.getRandomValues(new Uint8Array(1e6)) } catch (error) { look(error) }
       for (const value of [response, response.headers, response.body, await response.clone().blob(), response.headers.entries(), fetch, setTimeout, way, way.call, answer, answer.text, answer.headers]) look(value);
       await new Promise((resolve) => { setTimeout(resolve, 20) });
       for (let at = 0; at < seen.length; at += 1) look(seen[at]);
       try { await fetch("no address:") } catch (error) { look(error) }
       try { new Headers([["\\n", ""]]) } catch (error) { look(error) }
       return scopes`,
    );
    expect(await resultOf(browsers(), source, { ...here, service })).to.deep.equal([]);
  });

  it("cannot listen to events of the thread, or send them", async () => {
    const source = execute(
      `const errors = [];
       for (const target of [undefined, null]) for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"]) {
         const values = name === "dispatchEvent" ? [new Event("left")] : ["left", () => {}];
         try { EventTarget.prototype[name].apply(target, values); errors.push(name) } catch (error) { errors.push(error.message) } }
       return errors`,
    );
    expect(await resultOf(browsers(), source, here)).to.deep.equal(new Array(6).fill("Illegal invocation"));
  });

  it("each have their own check of requests, whatever the previous run was allowed", async () => {
    const asks = (path: string) =>
      execute(`try { return (await fetch(url + "${path}")).status } catch (error) { return error.message }`);
    const mayRequest = (address: string) => !address.includes("secret");
    expect(await resultOf(browsers(), asks("/secret-1"), here)).to.equal(200);
    expect(await resultOf(browsers(), asks("/secret-2"), { ...here, mayRequest })).to.equal("Failed to fetch");
    expect(await resultOf(browsers(), asks("/open"), { ...here, mayRequest })).to.equal(200);
    expect(arrived).to.deep.equal(["/secret-1", "/open"]);
  });
});
