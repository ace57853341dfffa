/** Who waits behind whom where senders take turns: a credential of the app's own behind itself, a visitor behind all of its address. */
import type { Visitor } from "../operations/access/gate.js";
import { isVisitor } from "../rules/access.js";
import { addressBlock } from "../rules/address-block.js";

/** Sender by network address only. */
export const addressSender = (address: string | undefined): string =>
  `address ${address === undefined ? "" : addressBlock(address)}`;

/** Tokens of visitors are public, so one sender can have many. They count by address. */
export function senderOf({ caller, address }: Pick<Visitor, "caller" | "address">): string {
  if (caller === null || isVisitor(caller)) return addressSender(address);
  return `credential ${caller.credentialId}`;
}
