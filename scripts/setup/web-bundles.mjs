/** Bundles of the pages and the client library in dist/web. A build bundles only what has changed since the earlier build. */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

/** Files on which all bundles depend. The lock file stands for the content of the installed packages. */
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

/** Returns the records of the earlier build; null if there are none, or if that build was killed while it saved them. */
function readRecords(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
}

/** The bundles in the folder `${root}/${folder}`, which all builds of these bundles must use. */
export class WebBundles {
  #root;
  #folder;
  #records;
  /** For each bundle, by its entry points and definitions: the paths and the hash of its sources, and its output files. */
  #bundles = new Map();
  /** Keys of the bundles of this build. */
  #used = new Set();
  #commonHash;
  #wantsSmallest;
  /** True if all bundles are compressed best. */
  #isSmallest;

  /**
   * Reads the records of the earlier build. Empties the folder if that build was interrupted or a common source has changed. Also empties
   * the folder if `isSmallest` is true and the earlier build compressed less.
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
   * Bundles with these options of esbuild, unless the earlier build bundled the same sources. Returns the bundle's output files as
   * esbuild's metafile describes them, by path.
   */
  async bundle(options) {
    const key = JSON.stringify([options.entryPoints, options.define]);
    this.#used.add(key);
    const earlier = this.#bundles.get(key);
    if (earlier && this.#isCurrent(earlier)) return earlier.outputs;
    // If this process is killed, the next build bundles everything again.
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

  /** True if the sources of a bundle have not changed, and all its files exist. */
  #isCurrent({ hash, sources, outputs }) {
    const areThere = Object.keys(outputs).every((file) => existsSync(join(this.#root, file)));
    return areThere && hash === hashFiles(this.#root, sources);
  }

  /** Removes the compressed versions of files. Files with a hash in their name keep theirs, because their content is the same. */
  #removeCompressed(files) {
    for (const file of files.flatMap((one) => [`${one}.gz`, `${one}.br`]))
      rmSync(join(this.#root, file), { force: true });
  }

  /** Removes files and records of earlier bundles, except the files in `otherFiles`, whose paths are relative to the folder. */
  removeOldFiles(otherFiles) {
    for (const key of this.#bundles.keys()) if (!this.#used.has(key)) this.#bundles.delete(key);
    const outputs = [...this.#bundles.values()].flatMap((bundle) => Object.keys(bundle.outputs));
    const kept = new Set([
      ...outputs.map((file) => join(this.#root, file)),
      ...otherFiles.map((file) => join(this.#folder, file)),
    ]);
    for (const entry of globSync("**/*", { cwd: this.#folder, withFileTypes: true })) {
      const file = join(entry.parentPath, entry.name);
      if (entry.isFile() && !kept.has(file.replace(COMPRESSED_ENDING, ""))) rmSync(file);
    }
  }

  /** Saves the records for the next build. */
  save() {
    const records = { commonHash: this.#commonHash, isSmallest: this.#isSmallest, bundles: [...this.#bundles] };
    writeFileSync(`${this.#records}.new`, JSON.stringify(records));
    renameSync(`${this.#records}.new`, this.#records);
  }
}
