/** Runs action.test files: bundles each with its action into a draft of its own, runs that on the server, and removes it. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { build, type Plugin } from "esbuild";
import { CliError, wrongUse } from "./failure.js";
import { Project } from "./project.js";
import type { Session } from "./session.js";

const ACTIONS = "/v3/apps/:app/actions";
const RUNS = "/v3/apps/:app/runs";
const POLL_MS = 250;

/** The module "svc/test", in the sandbox. */
const TEST_MODULE = `
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
export const rejects = async (promise, message) => {
  let error = null;
  try { await promise; } catch (caught) { error = caught; }
  if (error === null) throw new Error("expected a rejection");
  if (message !== undefined && !String(error?.message ?? error).includes(message)) throw new Error("expected " + shown(message) + " (got " + shown(String(error?.message ?? error)) + ")");
};
const [realFetch, RealDate] = [globalThis.fetch, globalThis.Date];
const restore = () => { globalThis.fetch = realFetch; globalThis.Date = RealDate; };
export const mock = {
  fetch(answer) {
    globalThis.fetch = async (...args) => {
      const answered = await answer(new Request(...args));
      return answered instanceof Response ? answered : new Response(JSON.stringify(answered), { headers: { "content-type": "application/json" } });
    };
  },
  time(date) {
    const now = new RealDate(date).getTime();
    globalThis.Date = class extends RealDate {
      constructor(...args) { super(...(args.length === 0 ? [now] : args)); }
      static now() { return now; }
    };
  },
};
export async function runAll() {
  const results = [];
  for (const { name, run } of tests) {
    try { await run(); results.push({ name, passed: true }); }
    catch (error) { results.push({ name, passed: false, error: String(error?.stack ?? error).slice(0, 4000) }); }
    restore();
  }
  return results;
}
`;

const MODULES: Plugin = {
  name: "svc-test",
  setup(bundler) {
    bundler.onResolve({ filter: /^svc(?:\/test)?$/ }, ({ path }) => ({
      path,
      namespace: "svc-test",
      sideEffects: false,
    }));
    bundler.onLoad({ filter: /.*/, namespace: "svc-test" }, ({ path }) => ({
      contents: path === "svc" ? "export const defineAction = (config) => config;" : TEST_MODULE,
    }));
  },
};

export interface TestResult {
  action: string;
  name: string;
  passed: boolean;
  error?: string;
}

async function bundleTest(root: string, file: string): Promise<string> {
  const contents = `import { runAll } from "svc/test";\nimport ${JSON.stringify(`./${file}`)};\nexport const execute = async () => runAll();`;
  try {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: root, loader: "js" },
      absWorkingDir: root,
      bundle: true,
      write: false,
      format: "iife",
      globalName: "svcTestModule",
      platform: "browser",
      target: "es2022",
      charset: "utf8",
      logLevel: "silent",
      plugins: [MODULES],
    });
    const script = outputFiles[0]!.text;
    return `async function execute() {\n${script}\nreturn svcTestModule.execute();\n}\n`;
  } catch (error) {
    throw new CliError(`${file} does not compile: ${(error as Error).message}`);
  }
}

/** Runs code as a draft that exists only for this run. */
async function runInSandbox({ client }: Session, code: string, config: Record<string, unknown>): Promise<TestResult[]> {
  const name = `svc-test-${randomBytes(6).toString("hex")}`;
  const { dependencies = [], environment = "server", integrationOrigins } = config;
  const body = {
    name,
    code,
    active: true,
    environment: environment === "client" ? "any" : environment,
    triggers: [{ trigger: "manual" }],
    dependencies,
    ...(integrationOrigins !== undefined && { integrationOrigins }),
  };
  const { body: made } = await client.request("POST", ACTIONS, { body });
  try {
    const query = { copy: "draft" };
    const { body: started } = await client.request("POST", `${ACTIONS}/${made.action.id}/run`, { query, body: {} });
    for (;;) {
      const { body: found } = await client.request("GET", `${RUNS}/${started.runId}`);
      const { state, log } = found.run;
      if (state === "completed") return log.data.result.data;
      if (!["queued", "running"].includes(state))
        throw new CliError(`the test run is ${state}: ${log?.data?.error?.message ?? ""}`);
      await delay(POLL_MS);
    }
  } finally {
    await client.request("DELETE", `${ACTIONS}/${made.action.id}`);
  }
}

const testFileOf = (root: string, folder: string): string | null =>
  ["action.test.ts", "action.test.js"]
    .map((file) => `actions/${folder}/${file}`)
    .find((file) => existsSync(join(root, file))) ?? null;

/** @throws CliError if a test fails, or there is none */
export async function runTests(session: Session, names: readonly string[]): Promise<TestResult[]> {
  const { root } = session.target;
  const project = new Project(root);
  const folders = names.length > 0 ? names : project.actionFolders();
  const found = folders.flatMap((folder) => {
    const file = testFileOf(root, folder);
    return file === null ? [] : [{ folder, file }];
  });
  if (found.length === 0) throw wrongUse("there is no actions/<name>/action.test.ts");
  const results: TestResult[] = [];
  for (const { folder, file } of found) {
    const config = await project.readConfig(folder);
    for (const result of await runInSandbox(session, await bundleTest(root, file), config)) {
      results.push({ ...result, action: folder });
      session.output.line(
        `${result.passed ? "ok    " : "failed"} ${folder}: ${result.name}`,
        result.passed ? "green" : "red",
      );
      if (result.error !== undefined) session.output.line(`       ${result.error}`);
    }
  }
  const failed = results.filter(({ passed }) => !passed).length;
  if (failed > 0) throw new CliError(`${failed} of ${results.length} tests failed`, 1, { tests: results });
  session.output.line(`${results.length} tests passed`, "green");
  return results;
}
