/** A shell into which a reader pastes one block after the other. A call that is refused ends it, where curl would go on. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { programEnvironment } from "../harness/program-environment.js";
import { ROOT } from "./pages.js";

/** `npm run example` and `npx svc` are the scripts themselves, which need no set-up; nothing else of npm is known here. */
const PRELUDE = `
set -eo pipefail
curl() { command curl --fail-with-body "$@"; }
npm() {
  if [ "$1 $2" != "run example" ]; then echo "npm $* is not run here: mark its block" >&2; return 64; fi
  shift 2
  if [ "$1" = -- ]; then shift; fi
  node ${ROOT}scripts/example.mjs "$@"
}
npx() {
  if [ "$1" != svc ]; then echo "npx $* is not run here: mark its block" >&2; return 64; fi
  shift
  node ${ROOT}scripts/svc.mjs "$@"
}
`;
const DONE = "<pasted>";

export interface PastedShell {
  /** Resolves to what the block printed on standard output; rejects with all that was said where it fails. */
  paste(commands: string): Promise<string>;
  end(): Promise<void>;
}

export function pastedShell(folder: string): PastedShell {
  // Without DATA_DIR and the like of whoever runs the tests: what the page says is all that a reader has.
  const env = programEnvironment();
  const bash = spawn("bash", { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"] });
  let printed = "";
  let complaints = "";
  bash.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    printed += chunk;
  });
  bash.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    complaints += chunk;
  });
  const closed = once(bash, "close");
  const ended = closed.then(([code]) => {
    throw new Error(`the shell ended with ${code}: ${printed}${complaints}`);
  });
  ended.catch(() => undefined);
  // Told by its end.
  bash.stdin.on("error", () => undefined);
  bash.stdin.write(PRELUDE);

  return {
    async paste(commands) {
      printed = "";
      bash.stdin.write(`${commands}\necho "${DONE}"\n`);
      while (!printed.includes(DONE)) await Promise.race([once(bash.stdout, "data"), ended]);
      return printed.slice(0, printed.indexOf(DONE));
    },
    async end() {
      bash.stdin.end();
      await closed;
    },
  };
}
