/** Network addresses that count as one: a client with an IPv6 address has a whole /64 block. */
import { isIPv6 } from "node:net";

const HEXTETS = 8;
const OF_A_BLOCK = 4;

/** Key of one holder of a credential. All visitors of a page may share a live token, so its requests are counted per network address. */
export const holderOf = ({ credentialId, address }: { credentialId: number; address?: string | undefined }): string =>
  `credential ${credentialId} ${address === undefined ? "" : addressBlock(address)}`;

/** The address itself for IPv4, the first 64 bits for IPv6; an IPv4 address in IPv6 form is the IPv4 address. */
export function addressBlock(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = "", tail] = address.split("%")[0]!.split("::");
  const groups = (text: string | undefined) => (text ? text.split(":") : []);
  const before = groups(head);
  // A dotted IPv4 part at the end stands for two groups.
  const after = groups(tail).flatMap((group) => (group.includes(".") ? [group, group] : [group]));
  const zeros = tail === undefined ? 0 : Math.max(0, HEXTETS - before.length - after.length);
  const whole = [...before, ...Array<string>(zeros).fill("0"), ...after];
  return whole
    .slice(0, OF_A_BLOCK)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
