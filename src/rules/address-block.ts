/**
 * Groups network addresses for rate limits. All IPv6 addresses of one /64 block count as one client, because a client usually has a block.
 */
import { isIPv6 } from "node:net";

const HEXTET_COUNT = 8;
const HEXTETS_OF_BLOCK = 4;

/**
 * Returns the key under which a rate limit counts a request: the credential and, if `address` is set, its block. With an address, visitors
 * who share a page's token do not share the limit.
 */
export const getRateLimitKey = ({
  credentialId,
  address,
}: {
  credentialId: number;
  address?: string | undefined;
}): string => `credential ${credentialId} ${address === undefined ? "" : getAddressBlock(address)}`;

/** Returns the address itself for IPv4, or the first 64 bits for IPv6. `::ffff:1.2.3.4` counts as 1.2.3.4. */
export function getAddressBlock(address: string): string {
  const mappedIpv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mappedIpv4 !== undefined || !isIPv6(address)) return mappedIpv4 ?? address;
  const [head = "", tail] = address.split("%")[0]!.split("::");
  const splitGroups = (text: string | undefined) => (text ? text.split(":") : []);
  const hextetsBefore = splitGroups(head);
  // An IPv4 address in dotted form at the end of an IPv6 address stands for two groups of 16 bits.
  const hextetsAfter = splitGroups(tail).flatMap((group) => (group.includes(".") ? [group, group] : [group]));
  const zeroCount = tail === undefined ? 0 : Math.max(0, HEXTET_COUNT - hextetsBefore.length - hextetsAfter.length);
  const allHextets = [...hextetsBefore, ...Array<string>(zeroCount).fill("0"), ...hextetsAfter];
  return allHextets
    .slice(0, HEXTETS_OF_BLOCK)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
