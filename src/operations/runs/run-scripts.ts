/**
 * What stands in a run's page before the author's code: the packages that the action lists, the invoking user's session, and the
 * client library with a token that dies with the run. Runs nothing.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { LRUCache } from "lru-cache";
import { needsOfNames } from "../../engine/browser/mode.js";
import type { PageScript } from "../../engine/browser/run.js";
import type { SessionOf } from "../../rules/env-script.js";
import {
  type Catalogue,
  isKept,
  modeOfLibrary,
  namesRequests,
  needOfPackage,
  needsLibrary,
  notBuilt,
  unresolved,
} from "../../rules/packages.js";
import type { Credentials } from "../access/credentials.js";
import type { KeptScripts } from "../packages/kept-scripts.js";
import type { HeldRun, RunCode } from "./run-facts.js";

/** dist/web, seen from dist/src/operations/runs. */
const BUILT = fileURLToPath(new URL("../../../web", import.meta.url));
const CLIENT_LIBRARY = "/client/svc-run.js";
const RESPONSE_LIBRARY = "/client/svc-response.js";
/** A use of it alone needs no client library. */
const RESPONSE_CALL = /\bSvc\.App\.V3\.Actions\.response\b/g;
const RESPONSE_WORD = /\bresponse\b/;
const REQUESTS_SCRIPT = "/client/svc-requests.js";
const isAddress = (dependency: string) => /^https:/i.test(dependency);
const SESSION_PACKAGE = "svc-session";

/** The token outlives the time limit by what the last request may need. */
const TOKEN_SLACK_MS = 10_000;

/** It sees what is around the call, where a trial's does not. */
const DIRECT_EVAL = /\beval\s*\(/;
/** Texts of which that is remembered. */
const SEEN_MAX = 1_000;

type SourceScript = Extract<PageScript, { source: string }>;

type Listing = Pick<RunCode, "code" | "dependencies" | "assets">;

export interface RunScripts {
  /**
   * The scripts in order, whether they hold a token, what ends it, and whether they may send requests to other services.
   * @throws DEPENDENCY_UNRESOLVED naming the package that cannot be loaded
   */
  prepare(run: HeldRun, action: Listing, timeoutMs: number): Promise<PreparedScripts>;
}

export interface PreparedScripts {
  packages: PageScript[];
  hasToken: boolean;
  /** Property by which the result of `Svc.App.V3.Actions.response` is recognized, random for each run: a payload cannot have it. */
  responseMark: string | null;
  /** True if the scripts may send requests to other services. */
  sendsRequests: boolean;
  revoke: () => Promise<void>;
}

export function createRunScripts(options: {
  sessionOf: SessionOf;
  credentials: Credentials;
  catalogue: Catalogue;
  keptScripts: KeptScripts;
  /** The service's address as a run reaches it. */
  apiUrl: string;
}): RunScripts {
  const { sessionOf, credentials, catalogue, keptScripts, apiUrl } = options;
  const known = new Map<string, Promise<SourceScript>>();
  /** By content. */
  const callsEval = new LRUCache<string, boolean>({ max: SEEN_MAX });

  /** A file of the build, read once. */
  function built(path: string, name: string): Promise<SourceScript> {
    const script =
      known.get(path) ??
      readFile(BUILT + path, "utf8").then((source) => ({
        name,
        source,
        content: path,
      }));
    known.set(path, script);
    return script;
  }

  /** Whether a script that names `eval` calls it so: libraries that list what the language has do not. */
  function seesAround(content: string, source: string): boolean {
    const calls = callsEval.get(content) ?? DIRECT_EVAL.test(source);
    callsEval.set(content, calls);
    return calls;
  }

  /** A script that was kept when the action was saved: nothing is fetched for a run. */
  async function keptScript(dependency: string, sha256: string): Promise<SourceScript> {
    const script = await keptScripts.read(sha256);
    if (!script) throw unresolved(dependency, "is not among the scripts that the service keeps");
    const { source, names, global } = script;
    const needs = names ? needsOfNames(names) : ({ mode: "document" } as const);
    const name = `${dependency.replaceAll(/[^\w@./-]/g, "_")}.js`;
    const sees = names?.includes("eval") && seesAround(sha256, source);
    const mayDoWithLess = names !== null && !sees && !names.includes("import()");
    return {
      name,
      source,
      ...needs,
      content: sha256,
      mayDoWithLess,
      ...(global !== null && { defines: global }),
    };
  }

  /** A package by its text. Rows of before hold addresses from which the page loads it. */
  async function packageScript(dependency: string, { code, assets, dependencies }: Listing): Promise<PageScript> {
    const kept = assets.find(({ name }) => name === dependency);
    if (kept && isKept(kept)) return keptScript(dependency, kept.sha256);
    const entry = catalogue.get(dependency);
    if (entry && entry.path === undefined && entry.url === undefined) throw notBuilt(dependency);
    const { path, url = dependency } = entry ?? {};
    if (path === undefined && isAddress(url)) return { name: dependency, url };
    if (path === undefined) {
      throw unresolved(dependency, "cannot be loaded in a server run");
    }
    const script = await built(path, `${dependency}.js`).catch(() => {
      throw unresolved(dependency, "has no file in this installation");
    });
    return { ...script, ...needOfPackage(entry!, code, dependencies.some(isAddress)), defines: "Svc" };
  }

  /** Its requests leave by the run's own way, not by the browser's network. */
  async function requestsScript(): Promise<SourceScript> {
    const script = await built(REQUESTS_SCRIPT, "svc-requests.js");
    return { ...script, mode: "network-isolate", network: false, defines: "Svc" };
  }

  async function sessionScript(run: HeldRun): Promise<SourceScript> {
    const session = JSON.stringify(JSON.stringify(await sessionOf(run)));
    // In an object literal `__proto__` would be no property like any other.
    const source = `globalThis.__svcSession = JSON.parse(${session});`;
    return { name: "svc-run-session.js", source, mode: "isolate" };
  }

  /** The packages by their names, each once. */
  function packageScripts(action: Listing): Promise<PageScript[]> {
    return Promise.all([...new Set(action.dependencies)].map((name) => packageScript(name, action)));
  }

  /** A run that has no use for the library is spared its evaluation and its token. */
  function usesLibrary({ code, dependencies, assets }: Listing): boolean {
    const isOfNpm = (name: string) => assets.some((asset) => asset.name === name && asset.version !== undefined);
    const mayUseIt = [...new Set(dependencies)].filter((name) => !isOfNpm(name));
    return needsLibrary(code, mayUseIt, catalogue);
  }

  /** Adds `Svc.App.V3.Actions.response`, behind the library if that is there. */
  async function responseScripts(mark: string): Promise<SourceScript[]> {
    const library = await built(RESPONSE_LIBRARY, "svc-response.js");
    const source = `__svcResponse(${JSON.stringify(mark)});`;
    return [
      { ...library, mode: "isolate", defines: "Svc" },
      { name: "svc-response-mark.js", source, mode: "isolate" },
    ];
  }

  return {
    async prepare(run, listed, timeoutMs) {
      const isResponding = listed.code.includes("Svc") && RESPONSE_WORD.test(listed.code);
      const responseMark = isResponding ? `response ${randomUUID()}` : null;
      // Judged without those calls: they need neither the library nor a document.
      const action = isResponding ? { ...listed, code: listed.code.replaceAll(RESPONSE_CALL, "") } : listed;
      const { code, dependencies } = action;
      const packages = await packageScripts(action);
      if (responseMark !== null) packages.unshift(...(await responseScripts(responseMark)));
      if (dependencies.includes(SESSION_PACKAGE)) packages.unshift(await sessionScript(run));
      if (!usesLibrary(action)) {
        const sendsRequests = namesRequests(code);
        if (sendsRequests) packages.unshift(await requestsScript());
        return { packages, hasToken: false, sendsRequests, responseMark, revoke: async () => undefined };
      }
      const { appId, id: runId, personId } = run;
      const expiresAt = new Date(Date.now() + timeoutMs + TOKEN_SLACK_MS);
      const { id, token } = await credentials.issue({ kind: "task", appId, runId, personId, expiresAt });
      const configuration = `Svc.configure(${JSON.stringify({ apiUrl, appId, token })});`;
      const mode = modeOfLibrary(code, [...new Set(dependencies)], catalogue);
      const client = await built(CLIENT_LIBRARY, "svc.js");
      packages.unshift({ ...client, mode }, { name: "svc-run.js", source: configuration, mode });
      return { packages, hasToken: true, sendsRequests: true, responseMark, revoke: () => credentials.expire(id) };
    },
  };
}
