/** npm registry for tests. It builds packages in memory, serves archives with any entries, and records all requests. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { Header } from "tar";

export interface ArchiveEntry {
  path: string;
  content?: string | Buffer;
  /** Type of the entry in the archive; a file by default. */
  type?: "File" | "Directory" | "SymbolicLink" | "Link";
  linkpath?: string;
}

const TAR_BLOCK_BYTES = 512;

/** Returns a gzipped tar archive with these entries, also unsafe ones. */
export function createArchive(entries: readonly ArchiveEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const { path, content = "", type = "File", linkpath } of entries) {
    const bytes = Buffer.from(content as string);
    const header = Buffer.alloc(TAR_BLOCK_BYTES);
    const mtime = new Date(0);
    new Header({ path, type, size: bytes.length, mode: 0o644, mtime, ...(linkpath && { linkpath }) }).encode(header, 0);
    parts.push(header, bytes, Buffer.alloc((TAR_BLOCK_BYTES - (bytes.length % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES));
  }
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * TAR_BLOCK_BYTES)]));
}

export interface PublishedPackage {
  name: string;
  version: string;
  /** Contents of files in the package by path, in addition to package.json. */
  files?: Record<string, string>;
  /** Additional fields of package.json. */
  manifest?: Record<string, unknown>;
  /** Time of publication. The registry returns the field `time` of a package only if at least one version has a time of publication. */
  publishedAt?: Date;
  /** Archive to serve in place of one built from `files`. */
  archive?: Buffer;
  /** Integrity to state in place of the archive's real one. */
  integrity?: string;
}

export interface TestRegistry {
  url: string;
  /** Requested paths, in order. */
  requestedPaths: string[];
  /** Headers of the last request. */
  headers: IncomingMessage["headers"];
  publish(...packages: PublishedPackage[]): void;
  remove(name: string): void;
  /** Handler of all requests in place of the registry; null for none. */
  replacementHandler: ((request: IncomingMessage, response: ServerResponse) => void) | null;
  close(): Promise<void>;
}

export async function startRegistry(): Promise<TestRegistry> {
  const versions = new Map<string, Map<string, PublishedPackage & { archive: Buffer }>>();
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!);
    registry.requestedPaths.push(path);
    registry.headers = request.headers;
    if (registry.replacementHandler) return registry.replacementHandler(request, response);
    const [, tarball, version] = /^\/-\/(.*)\/([^/]+)\.tgz$/.exec(path) ?? [];
    if (tarball) {
      const found = versions.get(tarball)?.get(version!);
      return void response.writeHead(found ? 200 : 404).end(found?.archive);
    }
    const name = path.slice(1);
    const all = versions.get(name);
    if (!all) return void response.writeHead(404).end("{}");
    const newest = [...all.keys()].at(-1);
    const manifests = [...all.values()].map((published) => [
      published.version,
      { ...published.manifest, name, version: published.version, dist: createDist(published) },
    ]);
    const packagesWithTime = [...all.values()].filter(({ publishedAt }) => publishedAt !== undefined);
    const time = Object.fromEntries(
      packagesWithTime.map(({ version: of, publishedAt }) => [of, publishedAt!.toISOString()]),
    );
    const document = { name, "dist-tags": { latest: newest }, versions: Object.fromEntries(manifests) };
    return void response.end(JSON.stringify(packagesWithTime.length > 0 ? { ...document, time } : document));
  });
  const createDist = ({ name, version, archive, integrity }: PublishedPackage & { archive: Buffer }) => ({
    tarball: `${registry.url}/-/${name}/${version}.tgz`,
    integrity: integrity ?? `sha512-${createHash("sha512").update(archive).digest("base64")}`,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const registry: TestRegistry = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requestedPaths: [],
    headers: {},
    publish(...packages) {
      for (const published of packages) {
        const { name, version, files = {}, manifest = {} } = published;
        const described = { name, version, main: "index.js", license: "MIT", ...manifest };
        const entries = Object.entries({ "package.json": JSON.stringify(described), ...files });
        const archive =
          published.archive ?? createArchive(entries.map(([path, content]) => ({ path: `package/${path}`, content })));
        versions.set(
          name,
          (versions.get(name) ?? new Map()).set(version, { ...published, manifest: described, archive }),
        );
      }
    },
    remove: (name) => void versions.delete(name),
    replacementHandler: null,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return registry;
}
