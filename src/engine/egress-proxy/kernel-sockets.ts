/** Asks the Linux kernel for the owner of a TCP connection, as the program `ss` does (sock_diag(7), docs/internals/adr.md, 13). */
import { endianness } from "node:os";
import ipaddr from "ipaddr.js";

export interface SocketEndpoint {
  address: string;
  port: number;
}

/** Returns the user who owns the local end of a TCP connection; null if the kernel has no record of the connection. */
export type FindSocketOwner = (localEnd: SocketEndpoint, remoteEnd: SocketEndpoint) => number | null;

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const NETLINK_SOCK_DIAG = 4;
const MSG_DONTWAIT = 0x40;
const SOCK_DIAG_BY_FAMILY = 20;
const NLM_F_REQUEST = 1;
const ADDRESS_FAMILY = { ipv4: 2, ipv6: 10 } as const;
const IPPROTO_TCP = 6;
const ANY_VALUE = 0xff_ff_ff_ff;

/** Length of the request to the kernel in bytes, and byte offsets of its fields: nlmsghdr, then inet_diag_req_v2. */
const REQUEST_LAYOUT = {
  bytes: 72,
  type: 4,
  flags: 6,
  number: 8,
  family: 16,
  protocol: 17,
  states: 20,
  ends: 24,
  cookie: 64,
};
/** Length of the kernel's response in bytes, and byte offsets of its fields: nlmsghdr, then inet_diag_msg. */
const ANSWER_LAYOUT = { bytes: 88, type: 4, number: 8, ends: 20, uid: 80 };
/** Byte offsets in the part that the request and the response share: two ports and two addresses, each with space for IPv6. */
const ENDS_LAYOUT = { bytes: 36, otherPort: 2, address: 4, otherAddress: 20 };
const ANSWER_MAX_BYTES = 4_096;

function encodeEnds(localEnd: SocketEndpoint, remoteEnd: SocketEndpoint): { family: number; ends: Buffer } {
  const ends = Buffer.alloc(ENDS_LAYOUT.bytes);
  const [address, otherAddress] = [ipaddr.process(localEnd.address), ipaddr.process(remoteEnd.address)];
  ends.writeUInt16BE(localEnd.port);
  ends.writeUInt16BE(remoteEnd.port, ENDS_LAYOUT.otherPort);
  ends.set(address.toByteArray(), ENDS_LAYOUT.address);
  ends.set(otherAddress.toByteArray(), ENDS_LAYOUT.otherAddress);
  return { family: ADDRESS_FAMILY[address.kind()], ends };
}

function encodeRequest(number: number, family: number, ends: Buffer): Buffer {
  const request = Buffer.alloc(REQUEST_LAYOUT.bytes);
  request.writeUInt32LE(REQUEST_LAYOUT.bytes);
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, REQUEST_LAYOUT.type);
  request.writeUInt16LE(NLM_F_REQUEST, REQUEST_LAYOUT.flags);
  request.writeUInt32LE(number, REQUEST_LAYOUT.number);
  request.writeUInt8(family, REQUEST_LAYOUT.family);
  request.writeUInt8(IPPROTO_TCP, REQUEST_LAYOUT.protocol);
  request.writeUInt32LE(ANY_VALUE, REQUEST_LAYOUT.states);
  request.set(ends, REQUEST_LAYOUT.ends);
  request.fill(0xff, REQUEST_LAYOUT.cookie);
  return request;
}

/** Returns a function that finds socket owners; null without netlink sockets, and on systems other than little-endian Linux. */
export async function openSocketOwnerFinder(): Promise<FindSocketOwner | null> {
  if (process.platform !== "linux" || endianness() !== "LE") return null;
  const { default: koffi } = await import("koffi");
  const c = koffi.load(null);
  const open = c.func("int socket(int domain, int type, int protocol)");
  const send = c.func("intptr_t send(int socket, const void *bytes, size_t length, int flags)");
  const receive = c.func("intptr_t recv(int socket, _Out_ void *bytes, size_t length, int flags)");
  const socket: number = open(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_SOCK_DIAG);
  if (socket < 0) return null;
  const answer = Buffer.alloc(ANSWER_MAX_BYTES);
  let number = 0;

  return (localEnd, remoteEnd) => {
    number = (number + 1) % ANY_VALUE;
    const { family, ends } = encodeEnds(localEnd, remoteEnd);
    if (send(socket, encodeRequest(number, family, ends), REQUEST_LAYOUT.bytes, 0) !== REQUEST_LAYOUT.bytes)
      return null;
    // The kernel writes its response before `send` returns, so `receive` does not wait.
    const received: number = receive(socket, answer, answer.length, MSG_DONTWAIT);
    if (received < ANSWER_LAYOUT.bytes || answer.readUInt16LE(ANSWER_LAYOUT.type) !== SOCK_DIAG_BY_FAMILY) return null;
    if (answer.readUInt32LE(ANSWER_LAYOUT.number) !== number) return null;
    // If the connection is gone, the kernel returns the listener of its port instead. So the endpoints are compared.
    const receivedEnds = answer.subarray(ANSWER_LAYOUT.ends, ANSWER_LAYOUT.ends + ENDS_LAYOUT.bytes);
    return receivedEnds.equals(ends) ? answer.readUInt32LE(ANSWER_LAYOUT.uid) : null;
  };
}
