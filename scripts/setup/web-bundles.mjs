/** Bundles of the pages and the client library in dist/web. A build makes only the bundles whose sources have changed. */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

/** Files on which all bundles depend. package-lock.json stands for the content of the installed packages. */
const COMMON_SOURCES = [
  "scripts/build-web.mjs",
  "scripts/setup/web-bundles.mjs",
  "package-lock.json",
  "tsconfig.json",
  "src/web/tsconfig.json",
];
const COMPRESSED_ENDING = /\.(gz|br)$/;

function hashFiles(root, files) {
  const hash = createHash("sha256");
  for (const file of files) {
    const path = join(root, file);
    hash.update(`${file}\0`).update(existsSync(path) ? readFileSync(path) : "absent");
  }
  return hash.digest("hex");
}

function readRecords(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
}

/** Bundles in the folder `${root}/${folder}`. All builds must use the same folder, because it contains the records of the last build. */
export class WebBundles {
  #root;
  #folder;
  #records;
  /** Sources (paths and hash) and output files of each bundle. The key is JSON of the bundle's entry points and definitions. */
  #bundles = new Map();
  #used = new Set();
  #commonHash;
  #wantsSmallest;
  #isSmallest;

  /**
   * Reads the records of the previous build. Empties the folder if that build was interrupted, if it compressed less than `isSmallest`
   * requires, or if a common source has changed.
   */
  constructor(root, folder, isSmallest) {
    this.#root = root;
    this.#folder = join(root, folder);
    this.#records = join(this.#folder, "bundles.json");
    this.#commonHash = hashFiles(root, COMMON_SOURCES);
    this.#wantsSmallest = isSmallest;
    this.#isSmallest = isSmallest;
    const earlier = readRecords(this.#records);
    if (earlier?.commonHash === this.#commonHash && (earlier.isSmallest || !isSmallest)) {
      this.#bundles = new Map(earlier.bundles);
      this.#isSmallest = earlier.isSmallest;
    } else {
      rmSync(this.#folder, { recursive: true, force: true });
      mkdirSync(this.#folder, { recursive: true });
    }
  }

  /**
   * Makes a bundle with these options of esbuild, if its sources have changed or an output file is missing. Returns its output files by
   * path, as in esbuild's metafile.
   */
  async bundle(options) {
    const key = JSON.stringify([options.entryPoints, options.define]);
    this.#used.add(key);
    const earlier = this.#bundles.get(key);
    if (earlier && this.#isCurrent(earlier)) return earlier.outputs;
    // Removes the records before it changes bundles. If this process is killed, the next build then makes all bundles.
    rmSync(this.#records, { force: true });
    this.#bundles.delete(key);
    this.#isSmallest &&= this.#wantsSmallest;
    const startedAt = Date.now();
    const { metafile } = await build(options);
    const sources = Object.keys(metafile.inputs).filter((file) => file.startsWith("src/"));
    const wasChanged = sources.some((file) => statSync(join(this.#root, file)).mtimeMs >= startedAt);
    const outputs = Object.fromEntries(
      Object.entries(metafile.outputs).map(([file, { inputs: _, ...output }]) => [file, output]),
    );
    if (!options.entryNames) this.#removeCompressed(Object.keys(outputs));
    this.#bundles.set(key, { sources, hash: wasChanged ? null : hashFiles(this.#root, sources), outputs });
    return outputs;
  }

  #isCurrent({ hash, sources, outputs }) {
    const areThere = Object.keys(outputs).every((file) => existsSync(join(this.#root, file)));
    return areThere && hash === hashFiles(this.#root, sources);
  }

  /** Removes the compressed versions of files whose names have no hash: their content may have changed. */
  #removeCompressed(files) {
    for (const file of files.flatMap((path) => [`${path}.gz`, `${path}.br`]))
      rmSync(join(this.#root, file), { force: true });
  }

  /** Removes files of bundles that this build did not use, except `otherFiles` (paths in the folder). */
  removeOldFiles(otherFiles) {
    for (const key of this.#bundles.keys()) if (!this.#used.has(key)) this.#bundles.delete(key);
    const outputs = [...this.#bundles.values()].flatMap((bundle) => Object.keys(bundle.outputs));
    const currentFiles = new Set([
      ...outputs.map((file) => join(this.#root, file)),
      ...otherFiles.map((file) => join(this.#folder, file)),
    ]);
    for (const entry of globSync("**/*", { cwd: this.#folder, withFileTypes: true })) {
      const file = join(entry.parentPath, entry.name);
      if (entry.isFile() && !currentFiles.has(file.replace(COMPRESSED_ENDING, ""))) rmSync(file);
    }
  }

  save() {
    const records = { commonHash: this.#commonHash, isSmallest: this.#isSmallest, bundles: [...this.#bundles] };
    writeFileSync(`${this.#records}.new`, JSON.stringify(records));
    renameSync(`${this.#records}.new`, this.#records);
  }
}
