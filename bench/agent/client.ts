/** A scripted coding agent. The agent changes an app only by MCP tools and the command line `svc`, and counts its calls. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const SVC_COMMAND_FILE = fileURLToPath(new URL("../../../scripts/svc.mjs", import.meta.url));
const UNTRUSTED_DATA_PATTERN = /<untrusted-data id="(\w+)">\n([\s\S]*)\n<\/untrusted-data id="\1">/;

export interface AgentOptions {
  url: string;
  appId: number;
  /** API token that the agent sends to /mcp. */
  agentToken: string;
  /** Token of the person in whose name the agent runs the command line. */
  personToken: string;
}

/** Number of calls that a task needed: MCP tools and commands of `svc`. */
export interface CallCounts {
  mcp: number;
  cli: number;
}

// biome-ignore lint/suspicious/noExplicitAny: a result has the shape of its tool or command
type ToolResult = any;

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

  /** Calls an MCP tool. Returns the tool's JSON, or its text if the text is not JSON. @throws Error if the tool reports an error */
  async callTool(name: string, args: Record<string, unknown> = {}): Promise<ToolResult> {
    this.calls.mcp += 1;
    const { content, isError } = await this.#mcp.callTool({ name, arguments: args });
    const resultText = (content as { text: string }[]).map((part) => part.text).join("\n");
    if (isError === true) throw new Error(`${name}: ${resultText}`);
    const unwrappedText = UNTRUSTED_DATA_PATTERN.exec(resultText)?.[2] ?? resultText;
    return /^[[{]/.test(unwrappedText) ? JSON.parse(unwrappedText) : unwrappedText;
  }

  /** Runs a command of `svc` and returns the JSON that it prints. @throws Error if the exit code is not 0 */
  async runSvc(
    args: readonly string[],
    { env = {}, input = "" }: { env?: object; input?: string } = {},
  ): Promise<ToolResult> {
    this.calls.cli += 1;
    const environment = {
      PATH: process.env["PATH"] ?? "",
      SVC_CONFIG_DIR: join(this.folder, ".config"),
      SVC_TOKEN: this.#options.personToken,
      ...env,
    };
    const child = spawn(process.execPath, [SVC_COMMAND_FILE, ...args, "--json", "--yes"], {
      cwd: this.folder,
      env: environment,
    });
    child.stdin.end(input);
    const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
    const [exitCode] = (await once(child, "close")) as [number | null];
    if (exitCode !== 0) throw new Error(`svc ${args.join(" ")}: ${await stderr}${await stdout}`);
    return JSON.parse(await stdout);
  }

  /** Writes a file into the project's folder, as an agent's editor does. */
  writeProjectFile(file: string, content: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), content);
  }

  async close(): Promise<void> {
    await this.#mcp.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
