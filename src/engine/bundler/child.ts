/**
 * Program of a build process. The process opens untrusted packages, sources and Git packs. So it gets no environment variables of the
 * service, and runs in a sandbox (sandbox.ts). It reads its job and the archives or pack from standard input, writes the result as JSON to
 * file descriptor 3, and ends.
 */

import { createWriteStream } from "node:fs";
import { isBuiltin } from "node:module";
import type { BundlerJob, BundlerResponse } from "../bundler.js";
import { UNPACKED_ARCHIVE_MAX_BYTES, unpackPackageFiles } from "./archive.js";
import { isDeclarationFile } from "./declarations.js";
import { PackageError } from "./fault.js";
import { FileTree } from "./file-tree.js";
import { buildPackageScript } from "./make-script.js";
import { readManifestFromGitPack } from "./project/git-project.js";
import { buildSourceScript } from "./source-script.js";

/** Maximum total bytes of a package's TypeScript declarations. Further files are left out. */
const DECLARATIONS_MAX_BYTES = 16 * 1024 * 1024;

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function processInput(input: Buffer): Promise<BundlerResponse> {
  const start = 4 + input.readUInt32BE();
  const { packages, maxBytes, subpath, source, repository } = JSON.parse(
    String(input.subarray(4, start)),
  ) as BundlerJob;
  if (source) return { built: await buildSourceScript(source) };
  if (repository) return { document: await readManifestFromGitPack(repository, input.subarray(start)) };
  const tree = new FileTree();
  let offset = start;
  let unpackedBytes = 0;
  let declarationBytes = 0;
  for (const { name, folder, bytes } of packages) {
    const archive = input.subarray(offset, offset + bytes);
    offset += bytes;
    try {
      const files = unpackPackageFiles(archive);
      for (const [path, content] of files) {
        if (!isDeclarationFile(path)) unpackedBytes += content.length;
        else {
          declarationBytes += content.length;
          if (declarationBytes > DECLARATIONS_MAX_BYTES) files.delete(path);
        }
      }
      tree.add(folder, files);
    } catch (error) {
      if (error instanceof PackageError && packages[0]!.name !== name)
        throw new PackageError(`the package needs ${name}, whose archive is not valid: ${error.message}`);
      throw error;
    }
    if (unpackedBytes > UNPACKED_ARCHIVE_MAX_BYTES) {
      throw new PackageError(
        `the package and its dependencies unpack to more than ${UNPACKED_ARCHIVE_MAX_BYTES / 2 ** 20} MB`,
      );
    }
  }
  return { script: await buildPackageScript(tree, packages, { maxBytes, subpath, isBuiltin }) };
}

async function main(): Promise<void> {
  const answer = await processInput(await readStandardInput()).catch((error: unknown): BundlerResponse => {
    if (error instanceof PackageError) return { fault: error.message };
    return { fault: "the files cannot be read", reason: String((error as Error)?.stack ?? error).slice(0, 2_000) };
  });
  const out = createWriteStream("", { fd: 3 });
  await new Promise<void>((resolve) => out.end(JSON.stringify(answer), resolve));
  process.exit(0);
}

await main();
