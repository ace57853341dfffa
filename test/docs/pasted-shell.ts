/**
 * A shell into which a test pastes blocks of commands one after the other, as a reader would. The shell ends if a command fails. curl also
 * fails at a response with an error status, unless the page shows an error as the response of the block.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { programEnvironment } from "../harness/program-environment.js";
import { ROOT } from "./pages.js";

/** Shell functions. `npm run example` and `npx svc` run the scripts directly; other npm and npx commands fail. */
const PRELUDE = `
set -eo pipefail
curl() { command curl --fail-with-body "$@" || [ "$?" = "$EXPECTED_EXIT_CODE" ]; }
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
const DONE_MARK = "<pasted>";
/** Exit code of curl with `--fail-with-body` after a response with an error status. */
const ERROR_STATUS_EXIT_CODE = 22;

export interface PastedShell {
  /** Resolves to the block's output; rejects if it fails. `expectsError`: the page shows an error as the response to the block. */
  paste(commands: string, expectsError?: boolean): Promise<string>;
  end(): Promise<void>;
}

export function pastedShell(folder: string): PastedShell {
  // The shell lacks DATA_DIR and the other variables of the test, because a reader has only the variables that the page sets.
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
  // Ignores the error of a write after the end of the shell, because the promise `ended` reports this end.
  bash.stdin.on("error", () => undefined);
  bash.stdin.write(PRELUDE);

  return {
    async paste(commands, expectsError = false) {
      printed = "";
      const expectedExitCode = expectsError ? ERROR_STATUS_EXIT_CODE : 0;
      bash.stdin.write(`EXPECTED_EXIT_CODE=${expectedExitCode}\n${commands}\necho "${DONE_MARK}"\n`);
      while (!printed.includes(DONE_MARK)) await Promise.race([once(bash.stdout, "data"), ended]);
      return printed.slice(0, printed.indexOf(DONE_MARK));
    },
    async end() {
      bash.stdin.end();
      await closed;
    },
  };
}
