/**
 * Reads refs and one commit of a git repository over HTTP, without history (git protocol version 2, gitprotocol-v2).
 * The caller sends the requests.
 */

const UPLOAD_PACK_TYPE = "application/x-git-upload-pack";
const PROTOCOL_HEADERS = { "git-protocol": "version=2" };
const FLUSH_PACKET = "0000";
const DELIMITER_PACKET = "0001";
const LENGTH_DIGITS = 4;
/** Filter of a fetch request: servers that support filters then leave out files above 1 MB. */
const BLOB_FILTER = "filter blob:limit=1m";
const REFS_MAX = 1_000;
/** Maximum bytes of a response that lists capabilities or refs. */
const LIST_MAX_BYTES = 256 * 1024;
/** Maximum number of packets. A pack of 5 MB in the smallest packets that servers send, of about 1 KB, has 5,000. */
const PACKETS_MAX = 20_000;
const REASON_MAX_CHARACTERS = 300;
/** Numbers of the channels in the packfile section of a response. */
const [PACK_CHANNEL, ERROR_CHANNEL] = [1, 3];

/** Error if the service cannot read the repository. The message is for editors of the app. */
export class GitRemoteFault extends Error {
  override readonly name = "GitRemoteFault";
}

export interface GitRequest {
  method: "GET" | "POST";
  /** Path that follows the URL of the repository. */
  path: string;
  headers: Record<string, string>;
  body: Buffer | null;
}

export interface GitResponse {
  status: number;
  /** Header values by name in lower case. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

export type SendGit = (request: GitRequest) => Promise<GitResponse>;

/** A branch or tag of the repository. */
export interface GitRef {
  name: string;
  /** Hash of the commit. For a tag with a message, the hash of the commit to which the tag points. */
  commit: string;
  /** Hash to which the ref points directly: of a commit, or of a tag with a message. */
  target: string;
}

/** Part of a response: the bytes of a line, or the end of a section. */
type Packet = Buffer | "flush" | "delimiter" | "end";

const encodePacket = (line: string): string =>
  (Buffer.byteLength(line) + LENGTH_DIGITS).toString(16).padStart(LENGTH_DIGITS, "0") + line;

const printableText = (bytes: Buffer): string =>
  bytes
    .toString("utf8")
    .replace(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, REASON_MAX_CHARACTERS);

/** Splits a response into packets. @throws GitRemoteFault if the response is not that of a Git server */
function splitPackets(body: Buffer): Packet[] {
  const packets: Packet[] = [];
  for (let at = 0; at < body.length; ) {
    const digits = body.toString("latin1", at, at + LENGTH_DIGITS);
    const length = /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : -1;
    if (length < 0 || length === 3 || at + length > body.length) {
      throw new GitRemoteFault("the response is not that of a git server");
    }
    if (packets.length === PACKETS_MAX)
      throw new GitRemoteFault(`the Git server sent more than ${PACKETS_MAX} packets in one response`);
    if (length > 3) packets.push(body.subarray(at + LENGTH_DIGITS, at + length));
    else packets.push(length === 0 ? "flush" : length === 1 ? "delimiter" : "end");
    at += Math.max(length, LENGTH_DIGITS);
  }
  return packets;
}

const toLine = (received: Packet): string | null =>
  typeof received === "string" ? null : received.toString("utf8").replace(/\n$/, "");

/** Rejects a response in which the server reports an error. @throws GitRemoteFault */
function checkError(packets: readonly Packet[]): void {
  const stated = packets.find(
    (received): received is Buffer => typeof received !== "string" && received.toString("latin1", 0, 4) === "ERR ",
  );
  if (stated) throw new GitRemoteFault(`the server rejects the request: ${printableText(stated.subarray(4))}`);
}

/** Rejects a response with an unexpected status or content type. @throws GitRemoteFault */
function checkStatus({ status, headers }: GitResponse, type: string): void {
  if (status === 401 || status === 403) {
    throw new GitRemoteFault(`the Git server does not accept the token, or no token is set (${status})`);
  }
  if (status === 404)
    throw new GitRemoteFault("there is no repository at this URL, or the token is not allowed to read it (404)");
  if (status !== 200) throw new GitRemoteFault(`the Git server answered with the status ${status}`);
  const [media = ""] = (headers["content-type"] ?? "").split(";");
  if (media.trim().toLowerCase() !== type) throw new GitRemoteFault("the response is not that of a git server");
}

/** Rejects a list of refs or capabilities that is too large. @throws GitRemoteFault */
function checkListSize({ body }: GitResponse): void {
  if (body.length > LIST_MAX_BYTES)
    throw new GitRemoteFault(
      `the Git server's list of refs or capabilities is larger than ${LIST_MAX_BYTES / 1024} KB`,
    );
}

/** Requests the capabilities of the Git server. Returns their values by name. */
async function requestCapabilities(send: SendGit): Promise<Map<string, string>> {
  const path = "/info/refs?service=git-upload-pack";
  const response = await send({ method: "GET", path, headers: PROTOCOL_HEADERS, body: null });
  checkStatus(response, `${UPLOAD_PACK_TYPE}-advertisement`);
  checkListSize(response);
  const packets = splitPackets(response.body);
  checkError(packets);
  const lines = packets.map(toLine).filter((line) => line !== null);
  if (!lines.includes("version 2"))
    throw new GitRemoteFault("the Git server does not support version 2 of Git's protocol");
  return new Map(
    lines.map((line) => {
      const [name = "", ...rest] = line.split("=");
      return [name, rest.join("=")];
    }),
  );
}

async function requestPackets(
  send: SendGit,
  head: readonly string[],
  lines: readonly string[],
  checkResponse?: (response: GitResponse) => void,
): Promise<Packet[]> {
  const text = (packetLines: readonly string[]) => packetLines.map((line) => encodePacket(`${line}\n`)).join("");
  const body = Buffer.from(text(head) + DELIMITER_PACKET + text(lines) + FLUSH_PACKET);
  const headers = {
    ...PROTOCOL_HEADERS,
    "content-type": `${UPLOAD_PACK_TYPE}-request`,
    accept: `${UPLOAD_PACK_TYPE}-result`,
  };
  const response = await send({ method: "POST", path: "/git-upload-pack", headers, body });
  checkStatus(response, `${UPLOAD_PACK_TYPE}-result`);
  checkResponse?.(response);
  const packets = splitPackets(response.body);
  checkError(packets);
  return packets;
}

function parseRef(line: string): GitRef | null {
  const [target = "", name = "", ...attributes] = line.split(" ");
  if (!/^[0-9a-f]{40}$/.test(target) || name === "") return null;
  const peeled = attributes.find((text) => /^peeled:[0-9a-f]{40}$/.test(text))?.slice("peeled:".length);
  return { name, target, commit: peeled ?? target };
}

/** Returns the bytes of the packfile section of a response. @throws GitRemoteFault */
function packIn(packets: readonly Packet[]): Buffer {
  const start = packets.findIndex((received) => toLine(received) === "packfile");
  if (start < 0) throw new GitRemoteFault("the Git server sent no files");
  const parts: Buffer[] = [];
  for (const received of packets.slice(start + 1)) {
    if (typeof received === "string") continue;
    const content = received.subarray(1);
    if (received[0] === ERROR_CHANNEL)
      throw new GitRemoteFault(`the server rejects the request: ${printableText(content)}`);
    if (received[0] === PACK_CHANNEL) parts.push(content);
  }
  return Buffer.concat(parts);
}

export interface GitRemote {
  /** Finds one ref by its full name, such as `refs/heads/main`. @throws GitRemoteFault */
  find(name: string): Promise<GitRef>;
  /** Downloads the pack of a commit: all its files, without history. @throws GitRemoteFault */
  fetch(ref: GitRef): Promise<Buffer>;
}

/** Connects to a repository. @throws GitRemoteFault, and errors of `send` */
export async function openGitRemote(send: SendGit): Promise<GitRemote> {
  const capabilities = await requestCapabilities(send);
  const features = (capabilities.get("fetch") ?? "").split(" ");
  if (!capabilities.has("ls-refs") || !features.includes("shallow")) {
    throw new GitRemoteFault("the Git server cannot send one commit without its history");
  }
  const format = capabilities.get("object-format");
  if (format !== undefined && format !== "sha1") {
    throw new GitRemoteFault("the repository uses SHA-256 hashes, which are not supported");
  }
  const headOf = (name: string) => [`command=${name}`, ...(format === undefined ? [] : [`object-format=${format}`])];
  return {
    async find(name) {
      const packets = await requestPackets(send, headOf("ls-refs"), ["peel", `ref-prefix ${name}`], checkListSize);
      const refs = packets.slice(0, REFS_MAX).map((received) => parseRef(toLine(received) ?? ""));
      const matchingRef = refs.find((ref) => ref?.name === name);
      if (!matchingRef) throw new GitRemoteFault(`the repository has no ${name}`);
      return matchingRef;
    },
    async fetch({ target }) {
      const filter = features.includes("filter") ? [BLOB_FILTER] : [];
      const lines = ["no-progress", ...filter, "deepen 1", `want ${target}`, "done"];
      return packIn(await requestPackets(send, headOf("fetch"), lines));
    },
  };
}
