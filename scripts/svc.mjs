#!/usr/bin/env node
// The command line `svc` of a checkout or of an installed package. Runs the built program with the package's own Node if there is one.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const NODE_MAJOR = 24;
const program = fileURLToPath(new URL("../dist/src/cli/svc/main.js", import.meta.url));
// Paths of Node relative to this file: in a checkout, and for an installed package.
const ownNode = ["../node_modules/.bin/node", "../../.bin/node"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync);

if (!existsSync(program)) {
  console.error("error svc is not built; run `npm run build` in its folder");
  process.exit(1);
}
if (Number(process.versions.node.split(".")[0]) >= NODE_MAJOR || ownNode === undefined) {
  const { runProgram } = await import(new URL("../dist/src/cli/svc/main.js", import.meta.url));
  await runProgram(process);
} else {
  const child = spawn(ownNode, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  // In a terminal, the child process also receives SIGINT and SIGHUP from the terminal, so this process does not forward them.
  const hasTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (signal === "SIGTERM" || !hasTerminal) child.kill(signal);
    });
  }
  child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}
