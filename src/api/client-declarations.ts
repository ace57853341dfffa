/** Reads the TypeScript declarations of the client library. The build writes them to dist/web/client/svc.d.ts. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const DECLARATIONS_FILE = fileURLToPath(new URL("../../web/client/svc.d.ts", import.meta.url));

let declarationsText: Promise<string> | null = null;

/** Returns the TypeScript declarations. Reads the file once; if reading fails, the next call tries again. */
export function readClientDeclarations(): Promise<string> {
  declarationsText ??= readFile(DECLARATIONS_FILE, "utf8").catch((error: unknown) => {
    declarationsText = null;
    throw error;
  });
  return declarationsText;
}
