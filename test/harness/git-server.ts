/** Git server over HTTP on loopback: `git http-backend` with one bare repository, to which tests add commits and tags. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface GitServer {
  /** URL of the repository. */
  url: string;
  /** Token that the server requires, or null. */
  token: string | null;
  /** HTTP status of all responses, which then have no body; null for normal responses. */
  status: number | null;
  /** Method, URL and `Git-Protocol` header of each request, in order. */
  requests: string[];
  /** Called before each response. */
  onRequest: () => Promise<void>;
  /**
   * Replaces the branch's content by `files` (texts by path; a text with the prefix `->` is a symbolic link). Returns the commit's hash.
   */
  commit(files: Record<string, string>, branch?: string): string;
  /** Sets a tag on a commit. @param message message of an annotated tag; without a message, the tag is lightweight */
  tag(name: string, commit: string, message?: string): void;
  stop(): Promise<void>;
}

const AUTHOR = "A <a@example.com>";
const GIT_IDENTITY_OPTIONS = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];

const dataOf = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`;

function parseCgiResponse(output: Buffer): { status: number; headers: [string, string][]; body: Buffer } {
  const end = output.indexOf("\r\n\r\n");
  const lines = output.toString("latin1", 0, end).split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const status = headers.find(([name]) => name === "Status")?.[1];
  return {
    status: status === undefined ? 200 : Number.parseInt(status, 10),
    headers: headers.filter(([name]) => name !== "Status"),
    body: output.subarray(end + 4),
  };
}

export async function startGitServer(): Promise<GitServer> {
  const root = mkdtempSync(join(tmpdir(), "svc-git-"));
  const bare = join(root, "shop.git");
  mkdirSync(bare);
  const run = (input: string, ...args: string[]) =>
    execFileSync("git", [...GIT_IDENTITY_OPTIONS, ...args], {
      ...{ cwd: bare, input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] },
    }).trim();
  run("", "init", "--quiet", "--bare", "--initial-branch=main");
  run("", "config", "uploadpack.allowFilter", "true");
  let head: string | null = null;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => void answer(Buffer.concat(chunks)));
    const answer = async (body: Buffer) => {
      await gitServer.onRequest();
      const { url = "", method = "", headers } = request;
      gitServer.requests.push(`${method} ${url} ${headers["git-protocol"]}`);
      const expected =
        gitServer.token === null ? null : `Basic ${Buffer.from(`git:${gitServer.token}`).toString("base64")}`;
      if (gitServer.status !== null) return response.writeHead(gitServer.status).end();
      if (expected !== null && headers.authorization !== expected) return response.writeHead(401).end();
      const [path = "", query = ""] = url.split("?");
      const child = spawn("git", ["http-backend"], {
        env: {
          PATH: process.env["PATH"],
          ...{ GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: "1", GIT_PROTOCOL: String(headers["git-protocol"] ?? "") },
          ...{ PATH_INFO: path, QUERY_STRING: query, REQUEST_METHOD: method },
          ...{ CONTENT_TYPE: headers["content-type"] ?? "", CONTENT_LENGTH: String(body.length) },
        },
        stdio: ["pipe", "pipe", "ignore"],
      });
      const output: Buffer[] = [];
      child.stdout.on("data", (chunk: Buffer) => output.push(chunk));
      child.stdin.on("error", () => undefined).end(body);
      child.once("close", () => {
        const { status, headers: sent, body: text } = parseCgiResponse(Buffer.concat(output));
        response.writeHead(status, Object.fromEntries(sent)).end(text);
      });
    };
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const gitServer: GitServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/shop.git`,
    token: null,
    status: null,
    requests: [],
    onRequest: async () => undefined,
    commit(files, branch = "main") {
      const parent = head === null ? "" : `from ${head}\n`;
      const blobs = Object.entries(files).map(([path, text]) => {
        const [mode, content] = text.startsWith("->") ? ["120000", text.slice(2)] : ["100644", text];
        return `M ${mode} inline "${path}"\n${dataOf(content)}`;
      });
      const commit = `commit refs/heads/${branch}\nmark :1\ncommitter ${AUTHOR} now\n${dataOf("change")}${parent}deleteall\n`;
      head = run(`${commit}${blobs.join("")}get-mark :1\n`, "fast-import", "--quiet", "--force", "--date-format=now");
      return head;
    },
    tag(name, commit, message) {
      run("", "tag", "--force", ...(message === undefined ? [] : ["--message", message]), name, commit);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(root, { recursive: true, force: true });
    },
  };
  return gitServer;
}
