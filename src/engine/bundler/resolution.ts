/** Resolves imports of a module within the file tree of packages, by the same rules as bundlers for browsers. */
import { isBuiltin } from "node:module";
import { dirname } from "node:path/posix";
import enhancedResolve from "enhanced-resolve";
import type { FileTree } from "./file-tree.js";

/** `empty`: the package's `browser` field removes the module. `node`: a module of Node. `missing`: there is no such module. */
type ResolvedModule = { file: string } | "empty" | "node" | "missing";

const { ResolverFactory } = enhancedResolve;
const RESOLVED_EXTENSIONS = [".js", ".mjs", ".cjs", ".json", ".jsx"];

export class Resolution {
  private readonly shared = {
    fileSystem: this.tree.toFileSystem(),
    useSyncFileSystemCalls: false,
    symlinks: false,
    extensions: RESOLVED_EXTENSIONS,
    aliasFields: ["browser"],
    modules: ["node_modules"],
    roots: [],
  };
  private readonly resolvers = {
    import: ResolverFactory.createResolver({
      ...this.shared,
      conditionNames: ["browser", "module", "import", "production", "default"],
      mainFields: ["browser", "module", "main"],
    }),
    require: ResolverFactory.createResolver({
      ...this.shared,
      conditionNames: ["browser", "module", "require", "production", "default"],
      mainFields: ["browser", "module", "main"],
    }),
  };

  constructor(private readonly tree: FileTree) {}

  /** Resolves an import. @param importer file of the tree that contains the import, or a folder with a slash at the end */
  resolve(specifier: string, importer: string, kind: "import" | "require"): Promise<ResolvedModule> {
    return new Promise((resolve) => {
      this.resolvers[kind].resolve({}, dirname(`${importer}x`), specifier, {}, (_error, path) => {
        if (path === false) resolve("empty");
        else if (typeof path === "string" && this.tree.read(path.split("?")[0]!))
          resolve({ file: path.split("?")[0]! });
        else resolve(isBuiltin(specifier.replace(/\/$/, "")) ? "node" : "missing");
      });
    });
  }
}
