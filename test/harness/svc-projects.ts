/** Creates project folders, and runs commands of the `svc` CLI in them, in this process or in a separate one. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { stop as stopEsbuild } from "esbuild";
import { runSvc } from "../../src/cli/svc/program.js";
import { programEnvironment } from "./program-environment.js";
import type { TestService } from "./service.js";

export const SVC_PROGRAM = fileURLToPath(new URL("../../../scripts/svc.mjs", import.meta.url));

export interface EndedCommand {
  code: number | null;
  out: string;
  err: string;
}

interface Options {
  env?: Record<string, string>;
  input?: string | Buffer;
  /** True to simulate a terminal as the command's output. */
  isTerminal?: boolean;
}

/** A command that runs until a test ends it. */
export interface RunningCommand {
  child: ChildProcessByStdio<null, Readable, Readable>;
  /** Returns what the command has printed so far to standard output and standard error. */
  printed(): string;
  /** Sends a signal to the command, and waits for its end. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

export function writeProjectFile(folder: string, file: string, content: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), content);
}

export type SvcProjects = ReturnType<typeof createSvcProjects>;

/** @param serviceOf returns the service; called only after the service has started */
export function createSvcProjects(serviceOf: () => TestService) {
  const folders: string[] = [];
  const running = new Set<RunningCommand>();
  const environment = (cwd: string, env: Record<string, string> = {}) => ({
    ...programEnvironment(),
    SVC_CONFIG_DIR: join(cwd, ".config"),
    SVC_TOKEN: serviceOf().tokens.editor,
    ...env,
  });

  function newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), "svc-cli-"));
    folders.push(folder);
    return folder;
  }

  /** Runs a command in this process, because a separate process takes 0.3 s, mostly to load modules. */
  async function svc(cwd: string, args: readonly string[], options: Options = {}): Promise<EndedCommand> {
    const { env = {}, input = "", isTerminal = false } = options;
    const newOutput = () => Object.assign(new PassThrough(), { isTTY: isTerminal });
    const [stdin, stdout, stderr] = [new PassThrough(), newOutput(), newOutput()];
    stdin.end(input);
    const [out, err] = [text(stdout), text(stderr)];
    const code = await runSvc(args, { cwd, env: environment(cwd, env), stdin, stdout, stderr });
    stdout.end();
    stderr.end();
    return { code, out: await out, err: await err };
  }

  async function runSvcProcess(
    cwd: string,
    args: readonly string[],
    { env = {}, input = "" }: Options = {},
  ): Promise<EndedCommand> {
    const child = spawn(process.execPath, [SVC_PROGRAM, ...args], { cwd, env: environment(cwd, env) });
    child.stdin.end(input);
    const [out, err] = [text(child.stdout), text(child.stderr)];
    const [code] = (await once(child, "close")) as [number | null];
    return { code, out: await out, err: await err };
  }

  /** Runs a command with `--json --yes`. Returns the parsed output. Fails if the command fails or prints to standard error. */
  // biome-ignore lint/suspicious/noExplicitAny: each command prints another type
  async function json(cwd: string, args: readonly string[], options?: Options): Promise<any> {
    const { code, out, err } = await svc(cwd, [...args, "--json", "--yes"], options);
    expect([code, err], out + err).to.deep.equal([0, ""]);
    return JSON.parse(out);
  }

  /** Starts a command that does not end by itself. @param isGroup true if `end` sends the signal to the command's whole process group */
  function start(
    cwd: string,
    args: readonly string[],
    env: Record<string, string> = {},
    isGroup = false,
  ): RunningCommand {
    const child = spawn(process.execPath, [SVC_PROGRAM, ...args], {
      cwd,
      env: environment(cwd, env),
      stdio: ["ignore", "pipe", "pipe"],
      detached: isGroup,
    });
    let printed = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (chunk: string) => {
        printed += chunk;
      });
    const closed = once(child, "close");
    const command: RunningCommand = {
      child,
      printed: () => printed,
      async end(signal = "SIGINT") {
        if (isGroup) process.kill(-child.pid!, signal);
        else child.kill(signal);
        await closed;
        running.delete(command);
      },
    };
    running.add(command);
    return command;
  }

  /** Creates a published app, and makes the person with the lowest ID its editor. Returns the app's ID. */
  async function newApp(name: string): Promise<number> {
    const service = serviceOf();
    const { body } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name } });
    const [{ id: userId }] = await service.db.query("SELECT id FROM person ORDER BY id LIMIT 1");
    await service.rest("POST", `/v1/apps/${body.app.id}/editors`, { as: "admin", body: { userId } });
    await service.rest("POST", `/v1/apps/${body.app.id}/publish`, { as: "admin" });
    return body.app.id;
  }

  /** Creates a folder, and runs `svc init` in it. @param app ID of the project's app; by default, a new app */
  async function newProject(app?: number): Promise<{ folder: string; app: number }> {
    const folder = newFolder();
    const id = app ?? (await newApp("project"));
    await json(folder, ["init", "--url", serviceOf().url, "--app", String(id)]);
    return { folder, app: id };
  }

  return {
    newFolder,
    svc,
    svcProcess: runSvcProcess,
    json,
    start,
    newApp,
    newProject,
    async cleanUp(): Promise<void> {
      for (const command of running) await command.end("SIGKILL");
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
      // Commands in this process start a process of esbuild, which must not outlive the tests.
      await stopEsbuild();
    },
  };
}
