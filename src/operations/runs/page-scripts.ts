/** Prepares the scripts that a page evaluates before the action's code: packages, the app user's session, and the client library. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { computeCodeNeedsFromGlobals } from "../../engine/browser/mode.js";
import type { PageScript } from "../../engine/browser/run.js";
import type { ReadAppSession } from "../../rules/app-session.js";
import {
  createDependencyError,
  findModeForClientLibraryCode,
  findPackageRequirement,
  isStoredScript,
  needsClientLibrary,
  type PackageCatalogue,
  usesRequestFunctions,
} from "../../rules/packages.js";
import type { Credentials } from "../access/credentials.js";
import type { StoredScripts } from "../packages/kept-scripts.js";
import type { RunCode, RunRecord } from "./run-types.js";

/** Folder dist/web with the built scripts. The compiled file of this module is in dist/src/operations/runs. */
const BUILT_SCRIPTS_FOLDER = fileURLToPath(new URL("../../../web", import.meta.url));
const CLIENT_LIBRARY_PATH = "/client/svc-run.js";
const RESPONSE_LIBRARY_PATH = "/client/svc-response.js";
const RESPONSE_CALL_PATTERN = /\bSvc\.App\.V3\.Actions\.response\b/g;
const RESPONSE_WORD_PATTERN = /\bresponse\b/;
const REQUESTS_SCRIPT_PATH = "/client/svc-requests.js";
const isScriptUrl = (dependency: string) => /^https:/i.test(dependency);
const SESSION_PACKAGE = "svc-session";

/** Milliseconds for which the token stays valid after the run's time limit, so that the run's last request can finish. */
const TOKEN_EXTRA_LIFETIME_MS = 10_000;

type SourceScript = Extract<PageScript, { source: string }>;

type CodeWithPackages = Pick<RunCode, "code" | "dependencies" | "assets">;

export interface PreparedScripts {
  /** Scripts of packages, the app user's session and the client library, in the order in which the page evaluates them. */
  packages: PageScript[];
  /** Random property name that marks results of `Svc.App.V3.Actions.response`; null if the code cannot call this function. */
  responseMark: string | null;
  sendsRequests: boolean;
  /** Absent if the scripts contain no token. */
  revokeToken?: () => Promise<void>;
}

interface PageScriptsOptions {
  readAppSession: ReadAppSession;
  credentials: Credentials;
  catalogue: PackageCatalogue;
  storedScripts: StoredScripts;
  apiUrl: string;
}

export class PageScriptLoader {
  private readonly files = new Map<string, SourceScript>();

  constructor(private readonly options: PageScriptsOptions) {}

  private async readBuiltScript(path: string, name: string): Promise<SourceScript> {
    const cached = this.files.get(path);
    if (cached) return cached;
    const script = { name, source: await readFile(BUILT_SCRIPTS_FOLDER + path, "utf8"), content: path };
    this.files.set(path, script);
    return script;
  }

  private async loadStoredScript(dependency: string, sha256: string): Promise<SourceScript> {
    const script = await this.options.storedScripts.read(sha256);
    if (!script) throw createDependencyError(dependency, "is not among the scripts that the service stores");
    const { source, names, global, callsEval } = script;
    const needs = names ? computeCodeNeedsFromGlobals(names) : ({ mode: "document" } as const);
    const name = `${dependency.replaceAll(/[^\w@./-]/g, "_")}.js`;
    const canBeTried = names !== null && !(names.includes("eval") && callsEval) && !names.includes("import()");
    return {
      name,
      source,
      ...needs,
      content: sha256,
      canBeTried,
      ...(global !== null && { defines: global }),
    };
  }

  /** Returns the script of a dependency. In actions of older releases, it may be a URL from which the page loads the script. */
  private async loadPackageScript(
    dependency: string,
    { code, assets, dependencies }: CodeWithPackages,
  ): Promise<PageScript> {
    const stored = assets.find(({ name }) => name === dependency);
    if (stored && isStoredScript(stored)) return this.loadStoredScript(dependency, stored.sha256);
    const entry = this.options.catalogue.get(dependency);
    const { path, url = dependency } = entry ?? {};
    if (path === undefined && isScriptUrl(url)) return { name: dependency, url };
    if (path === undefined) {
      throw createDependencyError(dependency, "cannot be loaded in a server run");
    }
    const script = await this.readBuiltScript(path, `${dependency}.js`).catch(() => {
      throw createDependencyError(
        dependency,
        "has no file in this installation; ask the operator to build the service again",
      );
    });
    return { ...script, ...findPackageRequirement(entry!, code, dependencies.some(isScriptUrl)), defines: "Svc" };
  }

  private async createSessionScript(run: RunRecord): Promise<SourceScript> {
    const session = JSON.stringify(JSON.stringify(await this.options.readAppSession(run)));
    // Passes the session as JSON text, because the key `__proto__` in an object literal would set the prototype.
    const source = `globalThis.__svcSession = JSON.parse(${session});`;
    return { name: "svc-run-session.js", source, mode: "isolate" };
  }

  /** Returns the scripts to evaluate before the code. Issues a token if the code may use the client library. */
  async prepare(run: RunRecord, actionCode: CodeWithPackages, timeoutMs: number): Promise<PreparedScripts> {
    const { credentials, catalogue, apiUrl } = this.options;
    const mayRespond = actionCode.code.includes("Svc") && RESPONSE_WORD_PATTERN.test(actionCode.code);
    const responseMark = mayRespond ? `response ${randomUUID()}` : null;
    // Calls of `Svc.App.V3.Actions.response` need no client library, so the search for uses of the library must not find these calls.
    const action = mayRespond
      ? { ...actionCode, code: actionCode.code.replaceAll(RESPONSE_CALL_PATTERN, "") }
      : actionCode;
    const { code } = action;
    const dependencies = [...new Set(action.dependencies)];
    const packages = await Promise.all(dependencies.map((name) => this.loadPackageScript(name, action)));
    if (responseMark !== null) {
      const library = await this.readBuiltScript(RESPONSE_LIBRARY_PATH, "svc-response.js");
      const source = `__svcResponse(${JSON.stringify(responseMark)});`;
      packages.unshift({ name: "svc-response-mark.js", source, mode: "isolate" });
      packages.unshift({ ...library, mode: "isolate", defines: "Svc" });
    }
    if (dependencies.includes(SESSION_PACKAGE)) packages.unshift(await this.createSessionScript(run));
    const isNpmPackage = (name: string) =>
      action.assets.some((asset) => asset.name === name && asset.version !== undefined);
    const otherDependencies = dependencies.filter((name) => !isNpmPackage(name));
    if (!needsClientLibrary(code, otherDependencies, catalogue)) {
      const sendsRequests = usesRequestFunctions(code);
      const script = sendsRequests && (await this.readBuiltScript(REQUESTS_SCRIPT_PATH, "svc-requests.js"));
      if (script) packages.unshift({ ...script, mode: "network-isolate", network: false, defines: "Svc" });
      return { packages, sendsRequests, responseMark };
    }
    const { appId, id: runId, personId } = run;
    const expiresAt = new Date(Date.now() + timeoutMs + TOKEN_EXTRA_LIFETIME_MS);
    const { id, token } = await credentials.issue({ kind: "task", appId, runId, personId, expiresAt });
    const configuration = `Svc.configure(${JSON.stringify({ apiUrl, appId, token })});`;
    const mode = findModeForClientLibraryCode(code, dependencies, catalogue);
    const client = await this.readBuiltScript(CLIENT_LIBRARY_PATH, "svc.js");
    packages.unshift({ ...client, mode }, { name: "svc-run.js", source: configuration, mode });
    return { packages, sendsRequests: true, responseMark, revokeToken: () => credentials.expire(id) };
  }
}
