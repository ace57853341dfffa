/** Under which user another process of this machine holds its end of a connection over loopback. Linux alone tells; knows no proxy. */
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import ipaddr from "ipaddr.js";

const TABLES = { ipv4: "/proc/net/tcp", ipv6: "/proc/net/tcp6" } as const;
const UID_COLUMN = 7;

/** As the kernel writes it: each word of the address in the machine's byte order, then the port. */
function endpoint(address: string, port: number): string {
  const bytes = Buffer.from(ipaddr.process(address).toByteArray()).swap32();
  return `${bytes.toString("hex")}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}

/** The uid of the peer's process; null where it cannot be known: another machine, or a system without /proc. */
export async function peerUid(socket: Socket): Promise<number | null> {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (!remoteAddress || !remotePort || !localAddress || !localPort) return null;
  const pair = ` ${endpoint(remoteAddress, remotePort)} ${endpoint(localAddress, localPort)} `;
  const table = await readFile(TABLES[ipaddr.process(remoteAddress).kind()], "latin1").catch(() => "");
  const line = table.split("\n").find((one) => one.includes(pair));
  return line === undefined ? null : Number(line.trim().split(/\s+/)[UID_COLUMN]);
}
