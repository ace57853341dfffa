/** A scripted coding agent: it reaches an app through the tools of /mcp and the command line only, and counts its calls. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const SVC = fileURLToPath(new URL("../../../scripts/svc.mjs", import.meta.url));
const FRAME = /<untrusted-data id="(\w+)">\n([\s\S]*)\n<\/untrusted-data id="\1">/;

export interface AgentOptions {
  url: string;
  appId: number;
  /** API token for /mcp. */
  agentToken: string;
  /** Token of the person whose command line the agent uses. */
  personToken: string;
}

/** Calls of one task, by the way that they took. */
export interface CallCounts {
  mcp: number;
  cli: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a result has the shape of its tool or command
type Result = any;

export class Agent {
  readonly folder = mkdtempSync(join(tmpdir(), "svc-agent-"));
  calls: CallCounts = { mcp: 0, cli: 0 };
  readonly url: string;
  readonly appId: number;
  readonly #options: AgentOptions;
  readonly #mcp = new Client({ name: "agent-bench", version: "1" });

  constructor(options: AgentOptions) {
    this.#options = options;
    this.url = options.url;
    this.appId = options.appId;
  }

  async connect(): Promise<void> {
    const transport = new StreamableHTTPClientTransport(new URL(`${this.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${this.#options.agentToken}` } },
    });
    await this.#mcp.connect(transport as Parameters<Client["connect"]>[0]);
  }

  /** Calls a tool, and returns its JSON, or its text if it is none. @throws Error if the tool failed */
  async tool(name: string, args: Record<string, unknown> = {}): Promise<Result> {
    this.calls.mcp += 1;
    const { content, isError } = await this.#mcp.callTool({ name, arguments: args });
    const all = (content as { text: string }[]).map((part) => part.text).join("\n");
    if (isError === true) throw new Error(`${name}: ${all}`);
    const inner = FRAME.exec(all)?.[2] ?? all;
    return /^[[{]/.test(inner) ? JSON.parse(inner) : inner;
  }

  /** Runs a command of `svc`, and returns its JSON. @throws Error if the command failed */
  async svc(args: readonly string[], { env = {}, input = "" }: { env?: object; input?: string } = {}): Promise<Result> {
    this.calls.cli += 1;
    const surroundings = {
      PATH: process.env["PATH"] ?? "",
      SVC_CONFIG_DIR: join(this.folder, ".config"),
      SVC_TOKEN: this.#options.personToken,
      ...env,
    };
    const child = spawn(process.execPath, [SVC, ...args, "--json", "--yes"], { cwd: this.folder, env: surroundings });
    child.stdin.end(input);
    const [out, err] = [text(child.stdout), text(child.stderr)];
    const [code] = (await once(child, "close")) as [number | null];
    if (code !== 0) throw new Error(`svc ${args.join(" ")}: ${await err}${await out}`);
    return JSON.parse(await out);
  }

  /** Writes a file of the project, as an agent's editor does. */
  write(file: string, content: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), content);
  }

  async close(): Promise<void> {
    await this.#mcp.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
