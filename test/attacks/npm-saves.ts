/** Starts a service with a package registry that the tests fill with malicious packages, all named `evil`. */
import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import {
  type ArchiveEntry,
  createArchive,
  type PublishedPackage,
  startRegistry,
  type TestRegistry,
} from "../harness/npm-registry.js";
import { startTestService, type TestService } from "../harness/service.js";

export const MANIFEST: ArchiveEntry = {
  path: "package/package.json",
  content: JSON.stringify({ name: "evil", version: "1.0.0", main: "index.js" }),
};
export const INDEX: ArchiveEntry = { path: "package/index.js", content: "module.exports = 1" };

export const evilPackage = (...entries: ArchiveEntry[]): PublishedPackage => ({
  name: "evil",
  version: "1.0.0",
  archive: createArchive([MANIFEST, ...entries]),
});

export const evilPackageWithCode = (content: string): PublishedPackage =>
  evilPackage({ path: "package/index.js", content });

export function zeros(megabytes: number): Buffer {
  const some = gzipSync(Buffer.alloc(16 * 2 ** 20), { level: 9 });
  return Buffer.concat([...Array.from({ length: megabytes / 16 }, () => some), createArchive([MANIFEST, INDEX])]);
}

export const many = (count: number): ArchiveEntry[] =>
  Array.from({ length: count }, (_, at) => ({ path: `package/${at}.js`, content: "" }));

export interface PackageSaves {
  registry: TestRegistry;
  service: TestService;
  save(dependency?: string): Promise<{ http: number; status: string; error: string }>;
  /** Saves an action with the package `evil`. Expects an error that matches `words`, and that nothing was stored. */
  expectRefusal(words: RegExp, http?: number): Promise<void>;
  /** Deletes all saved actions and packages. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

export async function startPackageSaves(): Promise<PackageSaves> {
  const registry = await startRegistry();
  const npm = { NPM_PACKAGES: "on", NPM_REGISTRY: registry.url, NPM_TOKEN: randomBytes(8).toString("hex") };
  const service = await startTestService({ ...npm, NPM_LICENSES: "MIT,ISC", ROLES: "api" });

  async function save(dependency = "evil") {
    const data = { name: "victim", code: "async function execute() {}", dependencies: [dependency] };
    const { http, body } = await service.rest("POST", `/v3/apps/${service.appId}/actions`, { body: data });
    return { http, status: body.status, error: String(body.error) };
  }

  return {
    registry,
    service,
    save,
    async expectRefusal(words, http = 400) {
      const answer = await save();
      const { status, error } = answer;
      expect({ http: answer.http, status }, error).to.deep.equal({ http, status: "DEPENDENCY_UNRESOLVED" });
      expect(error)
        .to.match(words)
        .and.to.match(/"evil"/);
      const [written] = await service.db.query(
        "SELECT (SELECT count(*)::int FROM action) AS actions, (SELECT count(*)::int FROM kept_script) AS scripts",
      );
      expect(written).to.deep.equal({ actions: 0, scripts: 0 });
    },
    async clear() {
      registry.replacementHandler = null;
      registry.remove("evil");
      await service.db.query("DELETE FROM action");
      await service.db.query("DELETE FROM kept_script");
    },
    async stop() {
      await service.stop();
      await registry.close();
    },
  };
}
