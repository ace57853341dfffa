/** Git server over HTTP on loopback: `git http-backend` with one bare repository, to which tests add commits and tags. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface GitServer {
  /** URL of the repository. */
  url: string;
  /** Token that the server requires, or null. */
  token: string | null;
  /** Paths and `Git-Protocol` headers of the requests, in order. */
  requests: string[];
  /** Function that the server calls before it responds to a request. */
  onRequest: () => Promise<void>;
  /**
   * Replaces all files of the branch by these, and commits them. A text that begins with `->` makes a symbolic link. @returns the hash of
   * the commit
   */
  commit(files: Record<string, string>, branch?: string): string;
  /** Sets a tag on a commit. @param message makes the tag an annotated one */
  tag(name: string, commit: string, message?: string): void;
  git(...args: string[]): string;
  stop(): Promise<void>;
}

const IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];

/** Splits a CGI response into its status, its headers and its body. */
function headOf(output: Buffer): { status: number; headers: [string, string][]; body: Buffer } {
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
  const [bare, work] = [join(root, "shop.git"), join(root, "work")];
  const run = (cwd: string, ...args: string[]) =>
    execFileSync("git", [...IDENTITY, ...args], { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  run(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  run(bare, "config", "uploadpack.allowFilter", "true");
  run(root, "init", "--quiet", "--initial-branch=main", work);
  run(work, "remote", "add", "origin", bare);
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => void answer(Buffer.concat(chunks)));
    const answer = async (body: Buffer) => {
      await made.onRequest();
      const { url = "", method = "", headers } = request;
      made.requests.push(`${method} ${url} ${headers["git-protocol"]}`);
      const expected = made.token === null ? null : `Basic ${Buffer.from(`git:${made.token}`).toString("base64")}`;
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
        const { status, headers: sent, body: text } = headOf(Buffer.concat(output));
        response.writeHead(status, Object.fromEntries(sent)).end(text);
      });
    };
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const made: GitServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/shop.git`,
    token: null,
    requests: [],
    onRequest: async () => undefined,
    commit(files, branch = "main") {
      run(work, "checkout", "--quiet", "--force", "-B", branch);
      run(work, "rm", "-r", "--quiet", "--ignore-unmatch", ".");
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(join(work, dirname(path)), { recursive: true });
        if (text.startsWith("->")) symlinkSync(text.slice(2), join(work, path));
        else writeFileSync(join(work, path), text);
      }
      run(work, "add", "--all");
      run(work, "commit", "--quiet", "--allow-empty", "--message", "change");
      run(work, "push", "--quiet", "--force", "origin", `HEAD:refs/heads/${branch}`);
      return run(work, "rev-parse", "HEAD");
    },
    tag(name, commit, message) {
      run(work, "tag", "--force", ...(message === undefined ? [] : ["--message", message]), name, commit);
      run(work, "push", "--quiet", "--force", "origin", `refs/tags/${name}`);
    },
    git: (...args) => run(work, ...args),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(root, { recursive: true, force: true });
    },
  };
  return made;
}
