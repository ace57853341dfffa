/**
 * Asks Linux about one TCP connection by its two ends, as `ss` does (sock_diag(7)): some microseconds, where /proc/net/tcp takes
 * milliseconds, whatever it lists, for the kernel walks all the places that connections could be in. Knows no lane.
 */
import { endianness } from "node:os";
import ipaddr from "ipaddr.js";

/** One end of a connection. */
export interface End {
  address: string;
  port: number;
}

/** The uid under which the end `own` of its connection to `other` is held; null where the kernel knows none, or does not say. */
export type AskKernel = (own: End, other: End) => number | null;

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const NETLINK_SOCK_DIAG = 4;
const MSG_DONTWAIT = 0x40;
const SOCK_DIAG_BY_FAMILY = 20;
const NLM_F_REQUEST = 1;
const FAMILY = { ipv4: 2, ipv6: 10 } as const;
const IPPROTO_TCP = 6;
const ANY = 0xff_ff_ff_ff;

/** Offsets in what is sent: nlmsghdr, then inet_diag_req_v2. */
const REQUEST = { bytes: 72, type: 4, flags: 6, number: 8, family: 16, protocol: 17, states: 20, ends: 24, cookie: 64 };
/** And in what comes: nlmsghdr, then inet_diag_msg. */
const ANSWER = { bytes: 88, type: 4, number: 8, ends: 20, uid: 80 };
/** Both hold the two ports and the two addresses, each with room for IPv6. */
const ENDS = { bytes: 36, otherPort: 2, address: 4, otherAddress: 20 };
const ANSWER_MAX_BYTES = 4_096;

function endsOf(own: End, other: End): { family: number; ends: Buffer } {
  const ends = Buffer.alloc(ENDS.bytes);
  const [address, otherAddress] = [ipaddr.process(own.address), ipaddr.process(other.address)];
  ends.writeUInt16BE(own.port);
  ends.writeUInt16BE(other.port, ENDS.otherPort);
  ends.set(address.toByteArray(), ENDS.address);
  ends.set(otherAddress.toByteArray(), ENDS.otherAddress);
  return { family: FAMILY[address.kind()], ends };
}

function requestOf(number: number, family: number, ends: Buffer): Buffer {
  const request = Buffer.alloc(REQUEST.bytes);
  request.writeUInt32LE(REQUEST.bytes);
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, REQUEST.type);
  request.writeUInt16LE(NLM_F_REQUEST, REQUEST.flags);
  request.writeUInt32LE(number, REQUEST.number);
  request.writeUInt8(family, REQUEST.family);
  request.writeUInt8(IPPROTO_TCP, REQUEST.protocol);
  request.writeUInt32LE(ANY, REQUEST.states);
  request.set(ends, REQUEST.ends);
  request.fill(0xff, REQUEST.cookie);
  return request;
}

/** null where this is no Linux, where there is no such socket to be had, or no way to the C library. */
export async function openKernelSockets(): Promise<AskKernel | null> {
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

  return (own, other) => {
    number = (number + 1) % ANY;
    const { family, ends } = endsOf(own, other);
    if (send(socket, requestOf(number, family, ends), REQUEST.bytes, 0) !== REQUEST.bytes) return null;
    // The kernel has answered before the sending returns; nothing is waited for.
    const came: number = receive(socket, answer, answer.length, MSG_DONTWAIT);
    if (came < ANSWER.bytes || answer.readUInt16LE(ANSWER.type) !== SOCK_DIAG_BY_FAMILY) return null;
    if (answer.readUInt32LE(ANSWER.number) !== number) return null;
    // Where the connection is gone, whoever listens at its port is told of instead.
    const told = answer.subarray(ANSWER.ends, ANSWER.ends + ENDS.bytes);
    return told.equals(ends) ? answer.readUInt32LE(ANSWER.uid) : null;
  };
}
