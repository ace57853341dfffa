/** Finds the user who runs the local process at the other end of a loopback connection. Only Linux reports the user. */
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import ipaddr from "ipaddr.js";
import { type FindSocketOwner, openSocketOwnerFinder, type SocketEndpoint } from "./kernel-sockets.js";

const TCP_TABLE_PATHS = { ipv4: "/proc/net/tcp", ipv6: "/proc/net/tcp6" } as const;
const UID_COLUMN = 7;
/** Error codes if a table in /proc does not exist (ENOENT), or if the system hides it (EACCES). */
const NOT_REPORTED_CODES = ["ENOENT", "EACCES"];

/** Result if the process at the other end of the connection has ended. The number is not a valid user ID. */
export const NO_SOCKET_OWNER = -1;

/** Formats an end of a connection as the kernel does: each word of the address in the machine's byte order, then the port. */
function formatSocketEnd({ address, port }: SocketEndpoint): string {
  const bytes = Buffer.from(ipaddr.process(address).toByteArray()).swap32();
  return `${bytes.toString("hex")}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}

/** Searches the tables of /proc, which is slow. Returns NO_SOCKET_OWNER if the connection is gone; null if there are no tables. */
export async function readSocketUidFromProc(
  localEnd: SocketEndpoint,
  remoteEnd: SocketEndpoint,
): Promise<number | null> {
  const pair = ` ${formatSocketEnd(localEnd)} ${formatSocketEnd(remoteEnd)} `;
  const path = TCP_TABLE_PATHS[ipaddr.process(localEnd.address).kind()];
  const table = await readFile(path, "latin1").catch((error: NodeJS.ErrnoException) => {
    // Throws any other error, such as too many open files, so that the proxy rejects the client.
    if (!NOT_REPORTED_CODES.includes(error.code ?? "")) throw error;
    return null;
  });
  if (table === null) return null;
  const line = table.split("\n").find((row) => row.includes(pair));
  return line === undefined ? NO_SOCKET_OWNER : Number(line.trim().split(/\s+/)[UID_COLUMN]);
}

let kernelSocketsOpening: Promise<FindSocketOwner | null> | null = null;

/**
 * Returns the user ID of the client's process; NO_SOCKET_OWNER if the client has closed its end; null if the system does not report it.
 * @throws the error if the ID cannot be read now, so that the client is not accepted unchecked
 */
export async function findPeerUid(
  socket: Pick<Socket, "remoteAddress" | "remotePort" | "localAddress" | "localPort">,
): Promise<number | null> {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (!remoteAddress || !remotePort || !localAddress || !localPort) return NO_SOCKET_OWNER;
  const [localEnd, remoteEnd] = [
    { address: remoteAddress, port: remotePort },
    { address: localAddress, port: localPort },
  ];
  // If a netlink socket cannot be opened, this function reads the tables in /proc instead.
  kernelSocketsOpening ??= openSocketOwnerFinder().catch(() => null);
  const uid = (await kernelSocketsOpening)?.(localEnd, remoteEnd) ?? null;
  return uid ?? (await readSocketUidFromProc(localEnd, remoteEnd));
}
