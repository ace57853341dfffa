/**
 * Identifies the sender of a request, for queues in which senders take turns: one credential of the app, or one network address for
 * visitors.
 */
import type { Visitor } from "../operations/access/gate.js";
import { isPageCaller } from "../rules/access.js";
import { addressBlock } from "../rules/address-block.js";

/** Returns the key of a sender that is identified only by its network address. */
export const addressSender = (address: string | undefined): string =>
  `address ${address === undefined ? "" : addressBlock(address)}`;

/** Returns the sender. Tokens of visitors are public, so that one visitor can have many: they count by address. */
export function senderOf({ caller, address }: Pick<Visitor, "caller" | "address">): string {
  if (caller === null || isPageCaller(caller)) return addressSender(address);
  return `credential ${caller.credentialId}`;
}
