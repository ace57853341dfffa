/** Tests the compile check. Within its limits, it returns V8's result for a source, and it does not execute the source. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import { createCompileChecker } from "../../src/engine/isolate-check.js";
import { ActionError } from "../../src/errors.js";
import { OVERLOADED_RETRY_SECONDS } from "../../src/limits.js";
import { CodeChecker } from "../../src/operations/actions/code-checker.js";
import { longTest } from "../harness/samples.js";

/** The time limit is longer than the service's, because a slow machine needs long for a large source. */
const { check, close } = createCompileChecker({ timeoutMs: 60_000 });
const MODULE_URL = new URL("../../src/engine/isolate-check.js", import.meta.url).href;

async function refused(source: string): Promise<string> {
  const error = await check(source).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(ActionError);
  expect((error as ActionError).status).to.equal("CODE_VALIDATION_FAILED");
  return (error as ActionError).message;
}

const LARGE_SOURCES: [string, string][] = [
  ["250,000 calls", `async function execute() { ${"x();".repeat(250_000)} }`],
  ["340,000 arrays", `[${"[],".repeat(340_000)}]`],
  ["a sum of 500,000", `x${"+x".repeat(500_000)}`],
  ["60,000 functions called at once", "(function(){})();".repeat(60_000)],
  ["240,000 regular expressions", `x=[${"/a/,".repeat(240_000)}]`],
];

/** Program that calls a WebAssembly function 1,000 times. Its many iterations make V8 compile the function again. */
const WASM_PROGRAM = `
  const bytes = "AGFzbQEAAAABBgFgAX8BfwMCAQAHBQEBZgAAChIBEAADQCAAQQFrIgANAAsgAAs=";
  const { instance } = await WebAssembly.instantiate(Buffer.from(bytes, "base64"));
  for (let n = 0; n < 1e3; n += 1) instance.exports.f(1e4);`;

/**
 * Program that exits while V8 still compiles, after two checks have exceeded their time limit. `close` rejects the third, waiting check.
 */
const EXITING_PROGRAM = `
  const { createCompileChecker } = await import("${MODULE_URL}");
  const { check, close } = createCompileChecker({ concurrency: 2, timeoutMs: 1 });
  const checks = Array.from({ length: 3 }, () => check("(function(){})();".repeat(60_000)));
  await Promise.allSettled(checks.slice(0, 2));
  const closed = close();
  await Promise.allSettled(checks);
  await closed;
  process.exit(0);`;

async function runProgram(program: string, flags: readonly string[] = []): Promise<string> {
  const args = ["--no-node-snapshot", ...flags, "--input-type=module", "--eval", program];
  return (await promisify(execFile)(process.execPath, args)).stdout;
}

/** Runs WASM_PROGRAM after an import of `url`. Returns V8's messages about the collection of WebAssembly code. */
function collectWasmCode(url: string): Promise<string> {
  const flags = ["--stress-wasm-code-gc", "--wasm-tiering-budget=1000", "--wasm-sync-tier-up", "--trace-wasm-code-gc"];
  return runProgram(`await import("${url}");${WASM_PROGRAM}`, flags);
}

describe("the syntax check of code in an isolate", () => {
  after(close);

  it("accepts code that compiles", async () => {
    await check("const execute = async ({ payload }) => payload;");
  });

  it("returns V8's message with line and column", async () => {
    expect(await refused("async function execute() {\n  return (;\n}")).to.match(
      /^code, line 2, column \d+: Unexpected token/,
    );
    expect(await refused("let a; let a;")).to.contain("Identifier 'a' has already been declared");
    expect(await refused("x = /(/")).to.contain("Unterminated group");
  });

  it("never runs what it compiles", async () => {
    await check("while (true) {}");
    await check("throw new Error('ran')");
  });

  for (const [title, source] of LARGE_SOURCES) {
    it(`accepts or rejects a megabyte without harm: ${title}`, async () => {
      await check(source).catch((error: unknown) => expect(error).to.be.instanceOf(ActionError));
      await check("async function execute() {}");
    });
  }

  it("rejects nesting beyond V8's stack with a message of limited length", async () => {
    for (const source of [
      "(".repeat(500_000),
      "a=>".repeat(300_000),
      "function f(){".repeat(70_000),
      `/${"(".repeat(100_000)}/`,
    ]) {
      expect(await refused(source)).to.have.length.below(300);
    }
  });

  it("stops at its time limit and serves the next", async () => {
    const impatientChecker = createCompileChecker({ concurrency: 1, timeoutMs: 1 });
    const error: unknown = await impatientChecker.check(LARGE_SOURCES[3]![1]).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ActionError).with.property("message", "code takes longer than 1 ms to compile");
    await check("async function execute() {}");
    await impatientChecker.close();
  });

  longTest("lets the process exit while V8 compiles, and starts no check that waits", async () => {
    await runProgram(EXITING_PROGRAM);
  });

  it("rejects checks that wait for a slot or arrive later as soon as it is closed, and waits for the running ones", async () => {
    const closing = createCompileChecker({ concurrency: 2, timeoutMs: 60_000 });
    const order: string[] = [];
    const record = (name: string, work: Promise<void>) =>
      work.then(
        () => order.push(`${name} ended`),
        (error: ActionError) => order.push(`${name}: ${error.status}, ${error.message}, ${error.details.retryAfter}`),
      );
    const running = [1, 2].map(() => record("running", closing.check(LARGE_SOURCES[3]![1])));
    const waiting = record("waiting", closing.check("let a;"));
    const closed = Promise.all([record("close", closing.close()), record("second close", closing.close())]);
    await Promise.all([...running, waiting, record("later", closing.check("let a;")), closed]);
    const rejection = `OVERLOADED, the service is stopping, ${OVERLOADED_RETRY_SECONDS}`;
    expect(order.slice(0, 2)).to.have.members([`waiting: ${rejection}`, `later: ${rejection}`]);
    expect(order.slice(2)).to.deep.equal(["running ended", "running ended", "close ended", "second close ended"]);
  });

  it("does not report the end of the service as an error in the code", async () => {
    const closing = createCompileChecker();
    await closing.close();
    const codeChecker = new CodeChecker(closing.check);
    const error: unknown = await codeChecker.check(1, "async function execute() {}").catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ActionError).with.property("status", "OVERLOADED");
  });

  longTest("stops at its memory limit and serves the next", async () => {
    const small = createCompileChecker({ concurrency: 1, memoryMb: 8, timeoutMs: 60_000 });
    const error: unknown = await small.check(LARGE_SOURCES[3]![1]).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ActionError).with.property("message", "code needs more than 8 MB to compile");
    await small.check("async function execute() {}");
  });

  it("turns off V8's collection of WebAssembly code, which could block the whole process", async () => {
    expect(await collectWasmCode("node:v8")).to.contain("Triggering GC");
    expect(await collectWasmCode(MODULE_URL)).to.equal("");
  });

  it("serves many checks at once, an invalid text beside valid ones", async () => {
    const checks = Array.from({ length: 40 }, (_, i) =>
      i % 10 === 3 ? refused("let a; let a;") : check(`let a${i};`),
    );
    const results = await Promise.all(checks);
    expect(results.filter((result) => typeof result === "string")).to.have.length(4);
  });
});
