/**
 * Process of the service under `npm run dev`. This process first loads the packages, which takes longer than the service's own code.
 * When dev.mjs sends a message, this process starts the service.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./steps.mjs";

const IMPORT_OF_PACKAGE = /^import .*"((?!node:)[a-z@][^"]*)";$/gm;

const messageReceived = new Promise((resolve) => process.once("message", resolve));
// The connection also ends if dev.mjs is killed.
process.once("disconnect", process.exit);

const files = globSync("dist/src/**/*.js", { cwd: ROOT, exclude: ["dist/src/web/**"] });
const names = new Set(
  files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORT_OF_PACKAGE)].map(([, name]) => name),
  ),
);
// The service reports a package that cannot be loaded.
for (const name of names) await import(name).catch(() => undefined);

await messageReceived;
process.off("disconnect", process.exit);
process.disconnect();
await import(join(ROOT, "dist/src/main.js"));
