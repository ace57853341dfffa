/**
 * Tests faults of git servers: broken, hostile or too large packs and responses, and unreachable addresses. Also tests patterns of tags,
 * and the wait for pulls when the service stops.
 */
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";
import { expect } from "chai";
import { pino } from "pino";
import { createErrorReply } from "../../src/api/error-reply.js";
import { readManifestFromGitPack } from "../../src/engine/bundler/project/git-project.js";
import { openGitRemote, type SendGitRequest } from "../../src/engine/git-remote.js";
import { OutgoingError } from "../../src/engine/outgoing.js";
import { GitRepository } from "../../src/operations/git/git-repository.js";
import { GitWebhooks } from "../../src/operations/git/git-webhooks.js";
import { createOutgoingRequestSender } from "../../src/operations/requests/requests.js";
import { findPulledRefByName, matchesTagPattern, parseGitConnectionInput } from "../../src/rules/git-input.js";
import { longTest } from "../harness/samples.js";

const TYPES = { commit: 1, tree: 2, blob: 3, tag: 4 } as const;
const ENTRIES = ["action.ts", "action.js"];

interface Item {
  type: keyof typeof TYPES | "difference" | "unknown";
  content: Buffer;
  base?: string;
  /** Header of the object in the pack. By default, a correct header. */
  head?: Buffer;
  /** Size that the pack states for the object. By default, the actual size. */
  size?: number;
}

const hashOf = (type: string, content: Buffer): string =>
  createHash("sha1").update(`${type} ${content.length}\0`).update(content).digest("hex");

function number(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) + (rest >= 128 ? 128 : 0));
    if (rest < 128) return Buffer.from(bytes);
  }
}

function headOf(kind: number, size: number): Buffer {
  const rest = Math.floor(size / 16);
  const first = Buffer.from([(rest > 0 ? 128 : 0) | (kind << 4) | (size % 16)]);
  return rest > 0 ? Buffer.concat([first, number(rest)]) : first;
}

function packOf(items: readonly Item[], count = items.length): Buffer {
  const head = Buffer.alloc(12);
  head.write("PACK", "latin1");
  head.writeUInt32BE(2, 4);
  head.writeUInt32BE(count, 8);
  const parts = items.map(({ type, content, base, head: statedHead, size = content.length }) => {
    const kind = type === "difference" ? 7 : type === "unknown" ? 5 : TYPES[type];
    const named = base === undefined ? Buffer.alloc(0) : Buffer.from(base, "hex");
    return Buffer.concat([statedHead ?? headOf(kind, size), named, deflateSync(content)]);
  });
  const body = Buffer.concat([head, ...parts]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

const blob = (content: string | Buffer): Item => ({ type: "blob", content: Buffer.from(content) });
const tree = (entries: readonly [mode: string, name: string, hash: string][]): Item => ({
  type: "tree",
  content: Buffer.concat(
    entries.flatMap(([mode, name, hash]) => [Buffer.from(`${mode} ${name}\0`), Buffer.from(hash, "hex")]),
  ),
});
const hash = ({ type, content }: Item): string => hashOf(type, content);
const commitOf = (root: Item): Item => ({
  type: "commit",
  content: Buffer.from(`tree ${hash(root)}\nauthor a\n\nb\n`),
});

/** Builds the objects of a repository with one commit. By default, the root folder contains only `settings.json`, with this text. */
function buildRepository(text: string | Buffer, entries?: [string, string, string][]) {
  const file = blob(text);
  const root = tree(entries ?? [["100644", "settings.json", hash(file)]]);
  const commit = commitOf(root);
  return { file, root, commit, items: [commit, root, file] };
}

const read = (commit: string, pack: Buffer, folder = "") =>
  readManifestFromGitPack({ commit, folder, entryFileNames: ENTRIES }, pack);

async function faultOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}

describe("the git client of the service", () => {
  it("reads objects that a pack has whole, and as differences to others", async () => {
    const { file, root, commit, items } = buildRepository('[{"key":"a","value":1}]');
    const whole = JSON.parse(await read(hash(commit), packOf(items)));
    expect(whole.settings).to.deep.equal([{ key: "a", value: 1 }]);
    // The delta builds a file from 12 bytes of another file (the base) and an insert. In the pack, the base comes after the delta.
    const base = blob('[{"key":"a",xxxxxxxxxxxxxxxx');
    const rest = Buffer.from('"value":1}]');
    const content = Buffer.concat([
      number(base.content.length),
      number(file.content.length),
      Buffer.from([0x90, 12, rest.length]),
      rest,
    ]);
    const difference: Item = { type: "difference", base: hash(base), content };
    expect(await read(hash(commit), packOf([commit, difference, root, base]))).to.equal(JSON.stringify(whole));
    const tag: Item = { type: "tag", content: Buffer.from(`object ${hash(commit)}\ntype commit\n`) };
    expect(await read(hash(tag), packOf([tag, ...items]))).to.equal(JSON.stringify(whole));
  });

  longTest("rejects broken and oversized packs with an explanation", async () => {
    const { commit, items, file, root } = buildRepository("[]");
    const id = hash(commit);
    const changed = packOf(items);
    changed[20]! ^= 1;
    const zeros = blob(Buffer.alloc(48 * 2 ** 20));
    const base = blob("base");
    const delta = (...bytes: number[]): Item => ({ type: "difference", base: hash(base), content: Buffer.from(bytes) });
    const huge = Buffer.concat([number(4), number(2 ** 26), Buffer.from([0x90, 1])]);
    const cases: [pack: Buffer, fault: RegExp][] = [
      [Buffer.from("no pack"), /the received bytes are not a pack/],
      [changed, /the checksum of the pack is wrong/],
      [packOf(items, 4), /the pack ends too early/],
      [packOf([], 2_000_000_000), /more than 100000 files/],
      [packOf([{ ...file, size: 1 }, commit, root]), /an object cannot be unpacked/],
      [packOf([{ ...file, size: 2 ** 30 }, commit, root]), /an object is too large/],
      // The bytes state a size with so many digits that the last digit's factor is infinite, so that the size would be NaN.
      [packOf([{ ...file, head: Buffer.from([0xb0, ...Buffer.alloc(159, 0x80), 0]) }]), /a number is too long/],
      [packOf([base, delta(...Buffer.alloc(160, 0x80), 0)]), /a number is too long/],
      [packOf([zeros, zeros]), /unpacks to more than 64 MB/],
      [packOf([{ type: "unknown", content: Buffer.from("x") }]), /an object of the unknown type 5/],
      [packOf([{ ...delta(4, 1, 1, 65), base: "0".repeat(40) }]), /the base object of a delta is missing/],
      [packOf([base, delta(5, 1, 1, 65)]), /does not match the size of its base object/],
      [packOf([base, delta(4, 1, 0)]), /an unknown command/],
      [packOf([base, delta(4, 2, 1, 65)]), /fewer bytes than its header states/],
      [packOf([base, delta(4, 1, 2, 65, 65)]), /more bytes than its header states/],
      [packOf([base, delta(4, 9, 0x90, 9)]), /after the end of its base object/],
      [packOf([base, { type: "difference", base: hash(base), content: huge }]), /unpacks to more than 64 MB/],
      [packOf([root, file]), /the commit [0-9a-f]{40} is missing/],
      [packOf([commit, file]), /the tree [0-9a-f]{40} is missing/],
    ];
    for (const [pack, fault] of cases) expect(await faultOf(read(id, pack))).to.match(fault);
  });

  it("rejects names and kinds of files that lead out of a project", async () => {
    const of = async (entries: [string, string, string][]) => {
      const { commit, items } = buildRepository("[]", entries);
      return faultOf(read(hash(commit), packOf(items)));
    };
    const id = hash(blob("[]"));
    for (const name of ["..", ".", "", "a/b", "a\\b"])
      expect(await of([["100644", name, id]])).to.match(/a name that is not allowed/);
    expect(await of([["120000", "settings.json", id]])).to.equal(
      "settings.json is a symbolic link, which a project cannot have",
    );
    expect(await of([["160000", "actions", id]])).to.equal("actions is a submodule, which a project cannot have");
    expect(await of([["100644", "settings.json", "0".repeat(40)]])).to.match(/settings\.json is missing/);
    const { commit, items } = buildRepository(Buffer.from([0xff, 0xfe]));
    expect(await faultOf(read(hash(commit), packOf(items)))).to.equal("settings.json is not UTF-8 text");
    let [folder, all] = [tree([["100644", "x.ts", id]]), [blob("[]")]];
    for (let depth = 0; depth < 20; depth += 1) {
      all = [...all, folder];
      folder = tree([["40000", "lib", hash(folder)]]);
    }
    const deep = commitOf(folder);
    expect(await faultOf(read(hash(deep), packOf([...all, folder, deep])))).to.match(/nested deeper than 16 folders/);
    // Each folder lists the previous one ten times, so that six levels have a million entries.
    let [many, levels] = [tree([]), [] as Item[]];
    for (let depth = 0; depth < 6; depth += 1) {
      levels.push(many);
      const inner = hash(many);
      many = tree(Array.from({ length: 10 }, (_, at): [string, string, string] => ["40000", `f${at}`, inner]));
    }
    const top = tree([["40000", "lib", hash(many)]]);
    const bomb = commitOf(top);
    expect(await faultOf(read(hash(bomb), packOf([...levels, many, top, bomb])))).to.equal(
      "the project has more than 20000 files and folders",
    );
  });

  it("rejects responses that are not those of a git server", async () => {
    const packet = (text: string) => (text.length + 4).toString(16).padStart(4, "0") + text;
    const advertiseRefs = (...lines: string[]) => `${lines.map((line) => packet(`${line}\n`)).join("")}0000`;
    const server =
      (body: string, { status = 200, type = "application/x-git-upload-pack-advertisement" } = {}): SendGitRequest =>
      async () => ({ status, headers: { "content-type": type }, body: Buffer.from(body) });
    const cases: [send: SendGitRequest, fault: RegExp][] = [
      [server("", { status: 500 }), /the HTTP status 500/],
      [server("", { status: 404 }), /no repository at this URL/],
      [server("<html>", { type: "text/html" }), /not in the format of a Git server/],
      [server("zzzz"), /not in the format of a Git server/],
      [server("ffffabc"), /not in the format of a Git server/],
      [server(advertiseRefs("# service=git-upload-pack")), /does not support version 2/],
      [server(advertiseRefs("version 2", "ls-refs")), /one commit without its history/],
      [server(advertiseRefs("version 2", "ls-refs", "fetch=shallow", "object-format=sha256")), /SHA-256/],
      [server(packet("ERR go away\u001b[31m")), /^the Git server rejected the request: go away \[31m$/],
    ];
    for (const [send, fault] of cases) expect(await faultOf(openGitRemote(send))).to.match(fault);
  });

  it("rejects long lists and responses of very many packets, before it creates an object for each packet", async () => {
    const packet = (text: string) => (text.length + 4).toString(16).padStart(4, "0") + text;
    const capabilities = ["version 2", "ls-refs", "fetch=shallow"].map((line) => packet(`${line}\n`)).join("");
    const response = (kind: string, body: string) => ({
      status: 200,
      headers: { "content-type": `application/x-git-upload-pack-${kind}` },
      body: Buffer.from(body),
    });
    const server =
      (list: string, result = ""): SendGitRequest =>
      async ({ method }) =>
        method === "GET" ? response("advertisement", list) : response("result", result);
    const long = packet("x".repeat(60_000)).repeat(5);
    const tooLarge = "the Git server's list of refs or capabilities is larger than 256 KB";
    const tooMany = "the Git server sent more than 20000 packets in one response; check the URL of the repository";
    expect(await faultOf(openGitRemote(server(capabilities + long)))).to.equal(tooLarge);
    expect(await faultOf(openGitRemote(server(capabilities + packet("x").repeat(20_000))))).to.equal(tooMany);
    const remote = await openGitRemote(server(capabilities, long));
    expect(await faultOf(remote.findRef("refs/heads/main"))).to.equal(tooLarge);
    const ref = { name: "refs/heads/main", commit: "1".repeat(40), target: "1".repeat(40) };
    const many = await openGitRemote(server(capabilities, packet("x").repeat(20_001)));
    expect(await faultOf(many.fetchPack(ref))).to.equal(tooMany);
  });

  it("reaches no private address, and no http URL, unless the operator allows it", async () => {
    expect(() => parseGitConnectionInput({ provider: "github", url: "http://git.example/a" }, false)).to.throw(
      /the https URL/,
    );
    const outgoing = createOutgoingRequestSender({ allowPrivateNetwork: false, egressAddress: null });
    const repository = new GitRepository({ requestSender: outgoing, packages: { readRepository: async () => ({}) } });
    for (const host of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "localhost"]) {
      const input = parseGitConnectionInput({ provider: "github", url: `https://${host}/a/b` }, false);
      expect(await faultOf(repository.find(1, input, "token", "refs/heads/main")), host).to.match(
        /has no public address/,
      );
    }
    await outgoing.close();
  });

  it("names the server of a redirect to another origin, with and without a token", async () => {
    const input = parseGitConnectionInput({ provider: "github", url: "https://git.example/a/b" }, false);
    const outgoing = {
      send: async (_: unknown, { mayUseOrigin }: { mayUseOrigin: (origin: string) => boolean }) =>
        mayUseOrigin("https://other.example"),
    } as unknown as ReturnType<typeof createOutgoingRequestSender>;
    const repository = new GitRepository({ requestSender: outgoing, packages: { readRepository: async () => ({}) } });
    for (const token of ["token", null])
      expect(await faultOf(repository.find(1, input, token, "refs/heads/main"))).to.equal(
        "the Git server redirects to https://other.example, but a pull sends requests only to https://git.example; connect the app with the URL to which the server redirects",
      );
  });

  it("fails with Retry-After if a retry may succeed, and without it otherwise", async () => {
    const input = parseGitConnectionInput({ provider: "github", url: "https://git.example/a/b" }, false);
    const failWith = (error: Error) => async () => {
      throw error;
    };
    const answer = (status: number) => async () => ({ status, headers: {}, body: Buffer.alloc(0) });
    const cases: [send: () => Promise<unknown>, retryAfter: string | undefined][] = [
      ...[408, 425, 429, 500, 502, 503, 504].map((status): [() => Promise<unknown>, string] => [answer(status), "5"]),
      ...[200, 301, 400, 401, 403, 404, 501].map((status): [() => Promise<unknown>, undefined] => [
        answer(status),
        undefined,
      ]),
      [failWith(new OutgoingError("TRANSPORT", "the request failed (ECONNRESET)")), "5"],
      [failWith(new OutgoingError("TIMEOUT", "the request took too long")), "5"],
      [failWith(new DOMException("too late", "TimeoutError")), "5"],
      [failWith(new OutgoingError("POLICY", "the host has no public address")), undefined],
      [failWith(new OutgoingError("LIMIT", "the response is too large")), undefined],
    ];
    for (const [send, retryAfter] of cases) {
      const outgoing = { send } as unknown as ReturnType<typeof createOutgoingRequestSender>;
      const repository = new GitRepository({ requestSender: outgoing, packages: { readRepository: async () => ({}) } });
      const error = await repository.find(1, input, null, "refs/heads/main").catch((failure: unknown) => failure);
      const { http, headers, body } = createErrorReply(error, pino({ level: "silent" }));
      expect([http, body.status, headers["Retry-After"]], body.error).to.deep.equal([
        409,
        "GIT_PULL_FAILED",
        retryAfter,
      ]);
    }
  });

  it("requests a repository of GitLab below .git, where GitLab has it", async () => {
    const requested: string[] = [];
    const outgoing = {
      send: async ({ url }: { url: URL }) => {
        requested.push(url.pathname);
        return { status: 404, headers: {}, body: Buffer.alloc(0) };
      },
    } as unknown as ReturnType<typeof createOutgoingRequestSender>;
    const repository = new GitRepository({ requestSender: outgoing, packages: { readRepository: async () => ({}) } });
    for (const [provider, name] of [
      ["gitlab", "b"],
      ["gitlab", "b.git"],
      ["github", "b"],
    ]) {
      const input = parseGitConnectionInput({ provider, url: `https://git.example/a/${name}` }, false);
      await faultOf(repository.find(1, input, null, "refs/heads/main"));
    }
    expect(requested).to.deep.equal(["/a/b.git/info/refs", "/a/b.git/info/refs", "/a/b/info/refs"]);
  });

  it("waits at a stop for the pulls in progress, until its time is over, and starts no others", async () => {
    const row = { provider: "gitlab", branch: "main", tagPattern: null };
    const ended = Promise.withResolvers<null>();
    const waiting: { id: number; appId: number; ref: string }[] = [];
    const removed: number[] = [];
    const returned: number[] = [];
    const webhooks = new GitWebhooks({
      connections: { findRow: async () => row, readWebhookSecret: async () => "secret" },
      pulls: { pullInSlot: () => ended.promise },
      deliveries: {
        add: async (appId: number, ref: string) => {
          waiting.push({ id: waiting.length + 1, appId, ref });
          return true;
        },
        claim: async (count: number) => waiting.splice(0, Math.min(count, 1)),
        remove: async ({ id }: { id: number }) => void removed.push(id),
        returnAttempts: async () => void returned.push(removed.length),
      },
      accessChecks: { countGitWebhook: async () => undefined },
      log: pino({ level: "silent" }),
    } as unknown as ConstructorParameters<typeof GitWebhooks>[0]);
    const body = Buffer.from(JSON.stringify({ ref: "refs/heads/main", after: "1".repeat(40) }));
    const header = (name: string) => (name === "x-gitlab-token" ? "secret" : undefined);
    await webhooks.receive(1, { networkAddress: undefined, header, body, urls: [] });
    await webhooks.startDuePulls();
    const over = new AbortController();
    const order: string[] = [];
    const limitedDrain = webhooks.drain(over.signal).then(() => order.push("time is over"));
    const unlimitedDrain = webhooks.drain(new AbortController().signal).then(() => order.push("drained"));
    over.abort();
    await limitedDrain;
    order.push("pull ends");
    ended.resolve(null);
    await unlimitedDrain;
    expect([order, removed]).to.deep.equal([["time is over", "pull ends", "drained"], [1]]);
    // A pull that is in progress at the time limit stays counted as an attempt, because the process may end before the pull.
    expect(returned).to.deep.equal([0]);
    await webhooks.receive(1, { networkAddress: undefined, header, body, urls: [] });
    await webhooks.startDuePulls();
    expect(waiting).to.have.length(1);
  });

  it("matches tags by their pattern", () => {
    const fits = ["v*:v1", "v*:v", "*:a", "v*.*:v1.2", "a*a:aa", "v1:v1", "release/*:release/1", "*b*b*:abab"];
    const others = ["v*:x1", "a*a:a", "v1:v10", "v1:av1", "v*.*:v1", "*b*b*:ab", "ab*bc:abc"];
    const test = (pair: string) => matchesTagPattern(pair.split(":")[1]!, pair.split(":")[0]!);
    expect([fits.filter((value) => !test(value)), others.filter(test)]).to.deep.equal([[], []]);
    const fields = { branch: "main", tagPattern: "v*" };
    expect(findPulledRefByName("refs/tags/v1", fields)).to.deep.equal({ ref: "refs/tags/v1", publishesActions: true });
    for (const ref of ["refs/tags/v1 x", "refs/tags/v..", "refs/heads/main2", "refs/tags/", "refs/heads/v1"])
      expect(findPulledRefByName(ref, fields), ref).to.equal(null);
    expect(findPulledRefByName("refs/tags/v1", { ...fields, tagPattern: null })).to.equal(null);
  });
});
