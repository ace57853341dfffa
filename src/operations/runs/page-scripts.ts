/**
 * Builds the scripts that a page evaluates before the author's code: the action's packages, the session of the app
 * user, and the client library with a token that expires with the run.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { LRUCache } from "lru-cache";
import { needsOfNames } from "../../engine/browser/mode.js";
import type { PageScript } from "../../engine/browser/run.js";
import type { ReadSession } from "../../rules/env-script.js";
import {
  type Catalogue,
  isStoredScript,
  modeForLibraryCode,
  needsLibrary,
  notBuiltError,
  requirementOfPackage,
  unresolvedError,
  usesRequestFunctions,
} from "../../rules/packages.js";
import type { Credentials } from "../access/credentials.js";
import type { StoredScripts } from "../packages/kept-scripts.js";
import type { RunCode, RunRecord } from "./run-types.js";

/** Path of dist/web, relative to dist/src/operations/runs. */
const BUILT_SCRIPTS_FOLDER = fileURLToPath(new URL("../../../web", import.meta.url));
const CLIENT_LIBRARY = "/client/svc-run.js";
const RESPONSE_LIBRARY = "/client/svc-response.js";
/** Matches a call of `Svc.App.V3.Actions.response`, which works without the client library. */
const RESPONSE_CALL = /\bSvc\.App\.V3\.Actions\.response\b/g;
const RESPONSE_WORD = /\bresponse\b/;
const REQUESTS_SCRIPT = "/client/svc-requests.js";
const isScriptAddress = (dependency: string) => /^https:/i.test(dependency);
const SESSION_PACKAGE = "svc-session";

/** Time for which the token is valid after the run's time limit, so that the last request can end. */
const TOKEN_SLACK_MS = 10_000;

/** Matches a direct call of eval. Such code can read local variables around the call, which differ in a trial. */
const DIRECT_EVAL = /\beval\s*\(/;
/** Maximum number of cached results of `callsEval`. */
const CACHED_MAX = 1_000;

type SourceScript = Extract<PageScript, { source: string }>;

type CodeListing = Pick<RunCode, "code" | "dependencies" | "assets">;

export interface PreparedScripts {
  /** Scripts of packages, in the order in which they are evaluated. */
  packages: PageScript[];
  /** True if the scripts hold a task token, with which the run can read settings. */
  hasToken: boolean;
  /**
   * True if the scripts contain data that was read after the run's start, or a token with which the run can read data.
   */
  readsLater: boolean;
  /**
   * Random property that marks the result of `Svc.App.V3.Actions.response`. A payload cannot contain it, because each
   * run has a different one.
   */
  responseMark: string | null;
  /** True if the scripts may send requests to other services. */
  sendsRequests: boolean;
  /** Expires the token. */
  revoke: () => Promise<void>;
}

interface PageScriptsOptions {
  sessionOf: ReadSession;
  credentials: Credentials;
  catalogue: Catalogue;
  storedScripts: StoredScripts;
  /** The service's URL as runs reach it. */
  apiUrl: string;
}

export class PageScripts {
  private readonly files = new Map<string, Promise<SourceScript>>();
  /** Results of `callsEval`, by the hash of the script. */
  private readonly evalCalls = new LRUCache<string, boolean>({ max: CACHED_MAX });

  constructor(private readonly options: PageScriptsOptions) {}

  /** Reads a file of the build once, and caches it. */
  private readBuilt(path: string, name: string): Promise<SourceScript> {
    const script =
      this.files.get(path) ??
      readFile(BUILT_SCRIPTS_FOLDER + path, "utf8").then((source) => ({
        name,
        source,
        content: path,
      }));
    this.files.set(path, script);
    return script;
  }

  /** True if a script that names `eval` also calls it. Libraries that only list the names of globals do not. */
  private callsEval(content: string, source: string): boolean {
    const calls = this.evalCalls.get(content) ?? DIRECT_EVAL.test(source);
    this.evalCalls.set(content, calls);
    return calls;
  }

  /** Returns a script that was stored when the action was saved, so that a run fetches nothing. */
  private async storedScript(dependency: string, sha256: string): Promise<SourceScript> {
    const script = await this.options.storedScripts.read(sha256);
    if (!script) throw unresolvedError(dependency, "is not among the scripts that the service stores");
    const { source, names, global } = script;
    const needs = names ? needsOfNames(names) : ({ mode: "document" } as const);
    const name = `${dependency.replaceAll(/[^\w@./-]/g, "_")}.js`;
    const callsEval = names?.includes("eval") && this.callsEval(sha256, source);
    const canBeTried = names !== null && !callsEval && !names.includes("import()");
    return {
      name,
      source,
      ...needs,
      content: sha256,
      canBeTried,
      ...(global !== null && { defines: global }),
    };
  }

  /** Returns the script of a dependency. Rows of older releases contain URLs from which the page loads it. */
  private async packageScript(dependency: string, { code, assets, dependencies }: CodeListing): Promise<PageScript> {
    const stored = assets.find(({ name }) => name === dependency);
    if (stored && isStoredScript(stored)) return this.storedScript(dependency, stored.sha256);
    const entry = this.options.catalogue.get(dependency);
    if (entry && entry.path === undefined && entry.url === undefined) throw notBuiltError(dependency);
    const { path, url = dependency } = entry ?? {};
    if (path === undefined && isScriptAddress(url)) return { name: dependency, url };
    if (path === undefined) {
      throw unresolvedError(dependency, "cannot be loaded in a server run");
    }
    const script = await this.readBuilt(path, `${dependency}.js`).catch(() => {
      throw unresolvedError(dependency, "has no file in this installation");
    });
    return { ...script, ...requirementOfPackage(entry!, code, dependencies.some(isScriptAddress)), defines: "Svc" };
  }

  /** Returns the script that sends requests to other services through this process instead of the browser's network. */
  private async requestsScript(): Promise<SourceScript> {
    const script = await this.readBuilt(REQUESTS_SCRIPT, "svc-requests.js");
    return { ...script, mode: "network-isolate", network: false, defines: "Svc" };
  }

  private async sessionScript(run: RunRecord): Promise<SourceScript> {
    const session = JSON.stringify(JSON.stringify(await this.options.sessionOf(run)));
    // JSON, because `__proto__` in an object literal would set the prototype.
    const source = `globalThis.__svcSession = JSON.parse(${session});`;
    return { name: "svc-run-session.js", source, mode: "isolate" };
  }

  /** True if the code may use the client library. Other runs need neither the library nor a token. */
  private usesLibrary({ code, dependencies, assets }: CodeListing): boolean {
    const isOfNpm = (name: string) => assets.some((asset) => asset.name === name && asset.version !== undefined);
    const mayUseIt = [...new Set(dependencies)].filter((name) => !isOfNpm(name));
    return needsLibrary(code, mayUseIt, this.options.catalogue);
  }

  /**
   * Returns the scripts of `Svc.App.V3.Actions.response`. If the page has the client library, these scripts are
   * evaluated after it.
   */
  private async responseScripts(mark: string): Promise<SourceScript[]> {
    const library = await this.readBuilt(RESPONSE_LIBRARY, "svc-response.js");
    const source = `__svcResponse(${JSON.stringify(mark)});`;
    return [
      { ...library, mode: "isolate", defines: "Svc" },
      { name: "svc-response-mark.js", source, mode: "isolate" },
    ];
  }

  /**
   * Returns the scripts of a run, and issues its task token if the code may use the client library.
   * @throws DEPENDENCY_UNRESOLVED with the name of the package that cannot be loaded
   */
  async prepare(run: RunRecord, listing: CodeListing, timeoutMs: number): Promise<PreparedScripts> {
    const isResponding = listing.code.includes("Svc") && RESPONSE_WORD.test(listing.code);
    const responseMark = isResponding ? `response ${randomUUID()}` : null;
    // Removes calls of `response` before the code is examined, because they need neither the library nor a document.
    const action = isResponding ? { ...listing, code: listing.code.replaceAll(RESPONSE_CALL, "") } : listing;
    const { code } = action;
    const dependencies = [...new Set(action.dependencies)];
    const packages = await Promise.all(dependencies.map((name) => this.packageScript(name, action)));
    if (responseMark !== null) packages.unshift(...(await this.responseScripts(responseMark)));
    const hasSession = dependencies.includes(SESSION_PACKAGE);
    if (hasSession) packages.unshift(await this.sessionScript(run));
    if (!this.usesLibrary(action)) {
      const sendsRequests = usesRequestFunctions(code);
      if (sendsRequests) packages.unshift(await this.requestsScript());
      const revoke = async () => undefined;
      return { packages, hasToken: false, readsLater: hasSession, sendsRequests, responseMark, revoke };
    }
    const { credentials, catalogue, apiUrl } = this.options;
    const { appId, id: runId, personId } = run;
    const expiresAt = new Date(Date.now() + timeoutMs + TOKEN_SLACK_MS);
    const { id, token } = await credentials.issue({ kind: "task", appId, runId, personId, expiresAt });
    const configuration = `Svc.configure(${JSON.stringify({ apiUrl, appId, token })});`;
    const mode = modeForLibraryCode(code, dependencies, catalogue);
    const client = await this.readBuilt(CLIENT_LIBRARY, "svc.js");
    packages.unshift({ ...client, mode }, { name: "svc-run.js", source: configuration, mode });
    const revoke = () => credentials.expire(id);
    return { packages, hasToken: true, readsLater: true, sendsRequests: true, responseMark, revoke };
  }
}
