/**
 * Process of the service in `npm run dev`. Loads the packages first, which takes longer than loading the service, and starts the service
 * when dev.mjs sends a message.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./steps.mjs";

const IMPORT_OF_PACKAGE = /^import .*"((?!node:)[a-z@][^"]*)";$/gm;

const messageReceived = new Promise((resolve) => process.once("message", resolve));
// Ends this process when dev.mjs ends, even if dev.mjs is killed.
process.once("disconnect", process.exit);

const files = globSync("dist/src/**/*.js", { cwd: ROOT, exclude: ["dist/src/web/**"] });
const names = new Set(
  files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORT_OF_PACKAGE)].map(([, name]) => name),
  ),
);
// Ignores a package that cannot be loaded: the service reports it.
for (const name of names) await import(name).catch(() => undefined);

await messageReceived;
process.off("disconnect", process.exit);
process.disconnect();
await import(join(ROOT, "dist/src/main.js"));
