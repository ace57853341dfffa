#!/usr/bin/env node
// Starts the command line `svc`. If the current Node is too old, uses the Node of the package.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const NODE_MAJOR = 24;
const program = fileURLToPath(new URL("../dist/src/cli/svc/main.js", import.meta.url));
// Paths of Node relative to this file: in a checkout, and in an installed package.
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
  // In a terminal, the child process gets SIGINT and SIGHUP from the terminal, so this process must not forward them.
  const hasTerminal = [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      if (signal === "SIGTERM" || !hasTerminal) child.kill(signal);
    });
  }
  child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
}
