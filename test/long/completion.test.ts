/**
 * Tests the completion scripts of `svc` in real bash, zsh and fish: a person types the start of a word and presses Tab. Needs the Debian
 * packages `zsh` and `fish`, and the program `script` of the package `bsdutils`.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { SVC_PROGRAM } from "../harness/svc-projects.js";

/** Text that is typed before Tab, and the arguments that the completed command must have. */
const COMPLETIONS: readonly [string, string][] = [
  ["svc rollb", "rollback"],
  ["svc push --for", "push --force"],
  ["svc pus", "push"],
  // The folder contains lamps.json. The completion must be a subcommand, not this file.
  ["svc settings l", "settings list"],
  ["svc stage prom", "stage promotions"],
  ["svc logs --js", "logs --json"],
  ["svc data push Prices pri", "data push Prices prices.json"],
];

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

/** Command that starts each shell without the machine's configuration. */
const COMMANDS: Record<Shell, string> = { bash: "bash --norc --noprofile -i", zsh: "zsh -f -i", fish: "fish -N -i" };

/** Lines that load the completion script, and replace `svc` by a function that prints its arguments in brackets. */
const SETUPS: Record<Shell, readonly string[]> = {
  bash: ['svc() { echo "[$*]"; }', "source ./script"],
  zsh: ["autoload -U compinit", "compinit -D", 'svc() { print -r -- "[$*]" }', "source ./script"],
  fish: ['function svc; echo "[$argv]"; end', "source ./script"],
};

function checkPrograms(): void {
  for (const program of [...SHELLS, "script"]) {
    try {
      execFileSync("sh", ["-c", `command -v ${program}`]);
    } catch {
      throw new Error(`${program} is not installed; run apt-get install -y zsh fish bsdutils`);
    }
  }
}

describe("completion in a shell", function () {
  this.timeout(120_000);
  let folder: string;
  before(() => {
    checkPrograms();
    folder = mkdtempSync(join(tmpdir(), "svc-completion-"));
    for (const file of ["prices.json", "lamps.json", "pushed.txt"]) writeFileSync(join(folder, file), "[]");
    mkdirSync(join(folder, "home"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function type(shell: Shell, lines: readonly string[]): Promise<string> {
    const HOME = join(folder, "home");
    const env = { PATH: process.env["PATH"], HOME, XDG_CONFIG_HOME: HOME, TERM: "xterm", LC_ALL: "C.UTF-8" };
    const terminal = spawn("script", ["-qec", COMMANDS[shell], "/dev/null"], { cwd: folder, env });
    const printed = text(terminal.stdout);
    terminal.stdin.end([...lines, "exit", ""].join("\n"));
    return printed;
  }

  for (const shell of SHELLS) {
    it(`completes subcommands, options and files in ${shell}`, async () => {
      writeFileSync(join(folder, "script"), execFileSync(process.execPath, [SVC_PROGRAM, "completion", shell]));
      const printed = await type(shell, [...SETUPS[shell], ...COMPLETIONS.map(([typed]) => `${typed}\t`)]);
      const calls = [...printed.matchAll(/^\[([^\]\n]*)\]\r?$/gm)].map(([, call]) => call!.trim());
      expect(calls, printed).to.deep.equal(COMPLETIONS.map(([, completed]) => completed));
    });
  }
});
