/**
 * Positions of subscriptions to entries, as texts. A trusted caller gets the number of the change. Anyone else gets it sealed and with the
 * time: the numbers, the equality and the age of plain positions would show how much others change.
 */
import { createSecretKey, hkdfSync, type KeyObject } from "node:crypto";
import { open, seal } from "../../engine/cipher.js";
import type { KeyRing } from "../../engine/key-ring.js";
import { ActionError } from "../../errors.js";
import { described } from "../../rules/described.js";
import type { DataSourceKey } from "./entry-rows.js";

const PURPOSE = "svc entry position 1";
/** Shorter than changes are kept (change-upkeep.ts), so that only time decides whether a sealed position is too old. */
const SEALED_VALID_MS = 13 * 60_000;
const NUMBER_DIGITS = 15;

/** A position that a caller came back with; `number` null: it is too old, or sealed under a key that is gone. */
export interface Position {
  number: number | null;
}

/** The feed sends each subscriber a new position this often, so that one who sees no change can still resume. */
export const POSITION_EVERY_MS = 2 * 60_000;

export type EntryPositions = ReturnType<typeof createEntryPositions>;

export function createEntryPositions({ ring }: { ring: KeyRing }) {
  const keyOf = (master: Buffer): KeyObject =>
    createSecretKey(Buffer.from(hkdfSync("sha256", master, "", PURPOSE, 32)));
  const boundTo = ({ appId, id }: DataSourceKey): string => `${appId}:${id}`;

  function unseal(source: DataSourceKey, sealed: Buffer): string | null {
    let text: string | null = null;
    ring.find((master) => {
      try {
        text = open(keyOf(master), sealed, boundTo(source));
      } catch {
        // Another key sealed it, or none.
      }
      return text !== null;
    });
    return text;
  }

  return {
    /** The text of a position. */
    textOf(source: DataSourceKey, number: number, isTrusted: boolean): string {
      if (isTrusted) return String(number);
      const text = `${String(number).padStart(NUMBER_DIGITS, "0")} ${Date.now()}`;
      return seal(keyOf(ring.current()), text, boundTo(source)).toString("base64url");
    },

    /** @returns null where the caller starts from now @throws REQUEST_INVALID */
    parse(source: DataSourceKey, since: unknown, isTrusted: boolean): Position | null {
      if (since === undefined || since === null) return null;
      if (typeof since === "string" && isTrusted && /^\d{1,15}$/.test(since)) return { number: Number(since) };
      if (typeof since !== "string" || !/^[\w-]{60,100}$/.test(since)) {
        const message = `since must be a position of this subscription (got ${described(since)})`;
        throw new ActionError("REQUEST_INVALID", message);
      }
      const [number, at] = (unseal(source, Buffer.from(since, "base64url")) ?? "").split(" ");
      const isValid = at !== undefined && Date.now() - Number(at) < SEALED_VALID_MS;
      return { number: isValid ? Number(number) : null };
    },
  };
}
