/**
 * Identifies the sender of a request, for queues in which senders take turns. A visitor is identified by network
 * address, any other caller by credential.
 */
import type { AccessCheckInput } from "../operations/access/access-checks.js";
import { isPageCaller } from "../rules/access.js";
import { getAddressBlock } from "../rules/address-block.js";

/** Returns the key of a sender that the service knows only by the network address. */
export const getRequestSenderKeyByAddress = (address: string | undefined): string =>
  `address ${address === undefined ? "" : getAddressBlock(address)}`;

/** Returns the key of the request's sender. Visitors count by address, because a page can get any number of visitor tokens. */
export function getRequestSenderKey({ caller, address }: Pick<AccessCheckInput, "caller" | "address">): string {
  if (caller === null || isPageCaller(caller)) return getRequestSenderKeyByAddress(address);
  return `credential ${caller.credentialId}`;
}
