/** Files of npm packages in memory. A module resolver reads them like a file system. */
import type { FileSystem } from "enhanced-resolve";
import type { PackageFiles } from "./archive.js";

type NodeCallback<T> = (error: NodeJS.ErrnoException | null, value?: T) => void;

const createStats = (isFile: boolean) => ({
  isFile: () => isFile,
  isDirectory: () => !isFile,
  isSymbolicLink: () => false,
});

function createMissingFileError(path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`the file ${path} does not exist`), { code: "ENOENT" });
}

export class FileTree {
  private readonly files = new Map<string, Buffer>();
  private readonly folders = new Set<string>(["/"]);

  add(folder: string, files: PackageFiles): void {
    for (const [path, content] of files) {
      this.files.set(folder + path, content);
      for (
        let segmentEnd = (folder + path).lastIndexOf("/");
        segmentEnd > 0;
        segmentEnd = (folder + path).lastIndexOf("/", segmentEnd - 1)
      ) {
        const parent = (folder + path).slice(0, segmentEnd);
        if (this.folders.has(parent)) break;
        this.folders.add(parent);
      }
    }
  }

  read(path: string): Buffer | undefined {
    return this.files.get(path);
  }

  readManifest(folder: string): Record<string, unknown> {
    try {
      const parsed: unknown = JSON.parse(String(this.files.get(`${folder}/package.json`) ?? "{}"));
      return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
        ? (parsed as Record<string, unknown>)
        : {};
    } catch {
      return {};
    }
  }

  toFileSystem(): FileSystem {
    const stat = (path: string, callback: NodeCallback<ReturnType<typeof createStats>>) => {
      if (this.files.has(path)) callback(null, createStats(true));
      else if (this.folders.has(path)) callback(null, createStats(false));
      else callback(createMissingFileError(path));
    };
    const readFile = (path: string, ...rest: unknown[]) => {
      const callback = rest.at(-1) as NodeCallback<Buffer>;
      const content = this.files.get(path);
      if (content) callback(null, content);
      else callback(createMissingFileError(path));
    };
    const reportMissingFile = (path: string, ...rest: unknown[]) =>
      (rest.at(-1) as NodeCallback<never>)(createMissingFileError(path));
    return {
      stat,
      lstat: stat,
      readFile,
      readdir: reportMissingFile,
      readlink: reportMissingFile,
    } as unknown as FileSystem;
  }
}
