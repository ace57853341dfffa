/**
 * Script that a test runs instead of the script that reads packages. It tries operations that the sandbox must block, and reports the
 * results.
 */
import { spawnSync } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync, readlinkSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

/** Task for this script. The test sends it instead of a package's archive. */
export interface ProbeTask {
  /** Port of a server on loopback. */
  port: number;
  /** Folder with the file `kept`. */
  folder: string;
  /** True if the script must never answer. */
  stays?: boolean;
  /** Signal that the script sends to itself. */
  signal?: NodeJS.Signals;
}

export interface Report {
  network: string;
  environment: string[];
  /** Result of each operation: "done" if it succeeded, otherwise an error code or "refused". */
  outcomes: Record<"connect" | "environ" | "write" | "truncate" | "create" | "folder" | "remove" | "shell", string>;
}

function attempt(act: () => unknown): string {
  try {
    act();
    return "done";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

async function reportOf({ port, folder }: ProbeTask): Promise<Report> {
  const keptFile = join(folder, "kept");
  const socket = connect(port, "127.0.0.1");
  const connected = new Promise<string>((resolve) => {
    socket.once("connect", () => resolve("done"));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code!));
  });
  const outcomes = {
    connect: await connected,
    environ: attempt(() => readFileSync(`/proc/${process.ppid}/environ`)),
    write: attempt(() => writeFileSync(keptFile, "x")),
    truncate: attempt(() => truncateSync(keptFile)),
    create: attempt(() => writeFileSync(join(folder, "made"), "")),
    folder: attempt(() => mkdirSync(join(folder, "made"))),
    remove: attempt(() => rmSync(keptFile)),
    shell: spawnSync("/bin/sh", ["-c", `rm ${keptFile}`]).status === 0 ? "done" : "refused",
  };
  return { network: readlinkSync("/proc/self/ns/net"), environment: Object.keys(process.env), outcomes };
}

async function readTask(): Promise<ProbeTask | null> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  const input = Buffer.concat(chunks);
  const text = String(input.subarray(4 + input.readUInt32BE()));
  return text === "" ? null : JSON.parse(text);
}

const task = await readTask();
if (task?.signal) process.kill(process.pid, task.signal);
if (task?.stays) await new Promise(() => setInterval(() => undefined, 60_000));
const answer = { fault: task === null ? "" : JSON.stringify(await reportOf(task)) };
createWriteStream("", { fd: 3 }).end(JSON.stringify(answer), () => process.exit(0));
