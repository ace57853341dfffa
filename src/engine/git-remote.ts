/** Reads refs and one commit of a Git repository, without history, over HTTP (Git protocol version 2, gitprotocol-v2). */

const UPLOAD_PACK_TYPE = "application/x-git-upload-pack";
const PROTOCOL_HEADERS = { "git-protocol": "version=2" };
const FLUSH_PACKET = "0000";
const DELIMITER_PACKET = "0001";
const PACKET_LENGTH_DIGITS = 4;
/** With this filter, a Git server that supports filters does not send files above 1 MB. */
const BLOB_FILTER = "filter blob:limit=1m";
const REFS_MAX = 1_000;
const LIST_MAX_BYTES = 256 * 1024;
/**
 * Maximum number of packets in a response. Git servers send a pack in packets of 1 KB or more, so a pack of 5 MB has about 5,000 at most.
 */
const PACKETS_MAX = 20_000;
const REASON_MAX_CHARACTERS = 300;
/** Side-band channels in the packfile section of a response: the pack's bytes, and error messages. */
const [PACK_CHANNEL, ERROR_CHANNEL] = [1, 3];
/** HTTP statuses of a Git server that cannot answer now, or that receives too many requests. */
const TEMPORARY_HTTP_STATUSES = [408, 425, 429, 500, 502, 503, 504];

/** Error if the service cannot read the repository. The message is for editors of the app. */
export class GitRemoteError extends Error {
  override readonly name = "GitRemoteError";

  constructor(
    message: string,
    /** True if a retry may succeed. */
    readonly isTemporary = false,
  ) {
    super(message);
  }
}

interface GitRequest {
  method: "GET" | "POST";
  /** Path that is appended to the URL of the repository. */
  path: string;
  headers: Record<string, string>;
  body: Buffer | null;
}

interface GitResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

export type SendGitRequest = (request: GitRequest) => Promise<GitResponse>;

interface GitRef {
  name: string;
  /** Hash of the commit. For an annotated tag (a tag with a message), the hash of the commit that the tag points to. */
  commit: string;
  /** Hash that the ref itself contains: of a commit, or of an annotated tag. */
  target: string;
}

/**
 * Content of a packet: a line, or a part of the pack. A packet without content ends a section ("delimiter"), a message ("flush") or the
 * whole response ("end").
 */
type Packet = Buffer | "flush" | "delimiter" | "end";

const encodePacket = (line: string): string =>
  (Buffer.byteLength(line) + PACKET_LENGTH_DIGITS).toString(16).padStart(PACKET_LENGTH_DIGITS, "0") + line;

const toPrintableText = (bytes: Buffer): string =>
  bytes
    .toString("utf8")
    .replace(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, REASON_MAX_CHARACTERS);

/** Splits a response into packets. @throws GitRemoteError if the response is not in the format of a Git server */
function splitPackets(body: Buffer): Packet[] {
  const packets: Packet[] = [];
  for (let at = 0; at < body.length; ) {
    const digits = body.toString("latin1", at, at + PACKET_LENGTH_DIGITS);
    const length = /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : -1;
    if (length < 0 || length === 3 || at + length > body.length) {
      throw new GitRemoteError("the response is not in the format of a Git server; check the URL of the repository");
    }
    if (packets.length === PACKETS_MAX)
      throw new GitRemoteError(
        `the Git server sent more than ${PACKETS_MAX} packets in one response; check the URL of the repository`,
      );
    if (length > 3) packets.push(body.subarray(at + PACKET_LENGTH_DIGITS, at + length));
    else packets.push(length === 0 ? "flush" : length === 1 ? "delimiter" : "end");
    at += Math.max(length, PACKET_LENGTH_DIGITS);
  }
  return packets;
}

const packetToLine = (packet: Packet): string | null =>
  typeof packet === "string" ? null : packet.toString("utf8").replace(/\n$/, "");

function throwReportedError(packets: readonly Packet[]): void {
  const errorPacket = packets.find(
    (packet): packet is Buffer => typeof packet !== "string" && packet.toString("latin1", 0, 4) === "ERR ",
  );
  if (errorPacket)
    throw new GitRemoteError(`the Git server rejected the request: ${toPrintableText(errorPacket.subarray(4))}`);
}

/** Checks status and content type of a response. @throws GitRemoteError */
function checkStatus({ status, headers }: GitResponse, type: string): void {
  if (status === 401 || status === 403) {
    throw new GitRemoteError(`the Git server does not accept the token, or no token is set (${status})`);
  }
  if (status === 404)
    throw new GitRemoteError("there is no repository at this URL, or the token is not allowed to read it (404)");
  if (status !== 200)
    throw new GitRemoteError(
      `the Git server responded with the HTTP status ${status}`,
      TEMPORARY_HTTP_STATUSES.includes(status),
    );
  const [mediaType = ""] = (headers["content-type"] ?? "").split(";");
  if (mediaType.trim().toLowerCase() !== type)
    throw new GitRemoteError("the response is not in the format of a Git server; check the URL of the repository");
}

function checkListSize({ body }: GitResponse): void {
  if (body.length > LIST_MAX_BYTES)
    throw new GitRemoteError(
      `the Git server's list of refs or capabilities is larger than ${LIST_MAX_BYTES / 1024} KB`,
    );
}

/** Requests the capabilities of the Git server, such as `fetch`. Returns their values by name. */
async function requestCapabilities(send: SendGitRequest): Promise<Map<string, string>> {
  const path = "/info/refs?service=git-upload-pack";
  const response = await send({ method: "GET", path, headers: PROTOCOL_HEADERS, body: null });
  checkStatus(response, `${UPLOAD_PACK_TYPE}-advertisement`);
  checkListSize(response);
  const packets = splitPackets(response.body);
  throwReportedError(packets);
  const lines = packets.map(packetToLine).filter((line) => line !== null);
  if (!lines.includes("version 2"))
    throw new GitRemoteError("the Git server does not support version 2 of Git's protocol");
  return new Map(
    lines.map((line) => {
      const [name = "", ...rest] = line.split("=");
      return [name, rest.join("=")];
    }),
  );
}

async function requestPackets(
  send: SendGitRequest,
  commandLines: readonly string[],
  argumentLines: readonly string[],
  checkResponse?: (response: GitResponse) => void,
): Promise<Packet[]> {
  const encodeLines = (packetLines: readonly string[]) => packetLines.map((line) => encodePacket(`${line}\n`)).join("");
  const body = Buffer.from(encodeLines(commandLines) + DELIMITER_PACKET + encodeLines(argumentLines) + FLUSH_PACKET);
  const headers = {
    ...PROTOCOL_HEADERS,
    "content-type": `${UPLOAD_PACK_TYPE}-request`,
    accept: `${UPLOAD_PACK_TYPE}-result`,
  };
  const response = await send({ method: "POST", path: "/git-upload-pack", headers, body });
  checkStatus(response, `${UPLOAD_PACK_TYPE}-result`);
  checkResponse?.(response);
  const packets = splitPackets(response.body);
  throwReportedError(packets);
  return packets;
}

function parseRef(line: string): GitRef | null {
  const [target = "", name = "", ...attributes] = line.split(" ");
  if (!/^[0-9a-f]{40}$/.test(target) || name === "") return null;
  const peeled = attributes.find((text) => /^peeled:[0-9a-f]{40}$/.test(text))?.slice("peeled:".length);
  return { name, target, commit: peeled ?? target };
}

/** Returns the bytes of the pack that a response contains. @throws GitRemoteError if the response contains no pack */
function extractPack(packets: readonly Packet[]): Buffer {
  const start = packets.findIndex((packet) => packetToLine(packet) === "packfile");
  if (start < 0)
    throw new GitRemoteError(
      "the response of the Git server lacks the files of the commit (no packfile); try again, and check the Git server if this error repeats",
    );
  const parts: Buffer[] = [];
  for (const packet of packets.slice(start + 1)) {
    if (typeof packet === "string") continue;
    const content = packet.subarray(1);
    if (packet[0] === ERROR_CHANNEL)
      throw new GitRemoteError(`the Git server rejected the request: ${toPrintableText(content)}`);
    if (packet[0] === PACK_CHANNEL) parts.push(content);
  }
  return Buffer.concat(parts);
}

interface GitRemote {
  /** Requests one ref by its full name, such as `refs/heads/main`. @throws GitRemoteError if there is no such ref */
  findRef(name: string): Promise<GitRef>;
  /**
   * Downloads the pack of the ref's commit, without history. A server that supports filters leaves out files above 1 MB.
   * @throws GitRemoteError
   */
  fetchPack(ref: GitRef): Promise<Buffer>;
}

/**
 * Checks that the Git server supports what this module needs, and returns functions that read from the repository.
 * @throws GitRemoteError, and errors of `send`
 */
export async function openGitRemote(send: SendGitRequest): Promise<GitRemote> {
  const capabilities = await requestCapabilities(send);
  const fetchFeatures = (capabilities.get("fetch") ?? "").split(" ");
  if (!capabilities.has("ls-refs") || !fetchFeatures.includes("shallow")) {
    throw new GitRemoteError("the Git server cannot send one commit without its history");
  }
  const objectFormat = capabilities.get("object-format");
  if (objectFormat !== undefined && objectFormat !== "sha1") {
    throw new GitRemoteError("the repository uses SHA-256 hashes, which are not supported");
  }
  const createCommandLines = (name: string) => [
    `command=${name}`,
    ...(objectFormat === undefined ? [] : [`object-format=${objectFormat}`]),
  ];
  return {
    async findRef(refName) {
      const packets = await requestPackets(
        send,
        createCommandLines("ls-refs"),
        ["peel", `ref-prefix ${refName}`],
        checkListSize,
      );
      const refs = packets.slice(0, REFS_MAX).map((packet) => parseRef(packetToLine(packet) ?? ""));
      const matchingRef = refs.find((ref) => ref?.name === refName);
      if (!matchingRef) throw new GitRemoteError(`the repository has no branch or tag ${refName}`);
      return matchingRef;
    },
    async fetchPack({ target }) {
      const filter = fetchFeatures.includes("filter") ? [BLOB_FILTER] : [];
      const lines = ["no-progress", ...filter, "deepen 1", `want ${target}`, "done"];
      return extractPack(await requestPackets(send, createCommandLines("fetch"), lines));
    },
  };
}
