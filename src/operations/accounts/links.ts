/**
 * One-time links of a set-up, an invitation or a reset. The token is stored as a hash, can be used once, and can be
 * revoked. The token is in the link's fragment, which browsers do not send to servers; a page exchanges it by POST.
 * Read this file before you add a kind of link.
 */
import type { DataSource } from "typeorm";
import { type Executor, rows } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { hashToken, newSecret } from "../access/tokens.js";

export type LinkKind = "setup" | "invitation" | "reset";

/** Pages of Studio that a link opens, each with the token in the fragment. */
const PAGE_BY_LINK_KIND: Record<LinkKind, string> = { setup: "setup", invitation: "invitation", reset: "reset" };

const INSERT_LINK = `
  INSERT INTO one_time_link (kind, hash, person_id, created_by, expires_at)
  VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond') RETURNING id, expires_at AS "expiresAt"`;

const IS_VALID_LINK = "hash = $1 AND kind = $2 AND used_at IS NULL AND revoked_at IS NULL AND expires_at > now()";
const REDEEM_LINK = `UPDATE one_time_link SET used_at = now() WHERE ${IS_VALID_LINK} RETURNING id, person_id AS "personId"`;
const SELECT_VALID_LINK = `SELECT id, person_id AS "personId" FROM one_time_link WHERE ${IS_VALID_LINK}`;
const REVOKE_LINKS =
  "UPDATE one_time_link SET revoked_at = now() WHERE id = $1 AND used_at IS NULL AND revoked_at IS NULL RETURNING id";
const REVOKE_ALL = `
  UPDATE one_time_link SET revoked_at = now()
   WHERE kind = $1 AND person_id IS NOT DISTINCT FROM $2 AND used_at IS NULL AND revoked_at IS NULL`;

export interface NewLink {
  kind: LinkKind;
  /** Person who can use the link; null if this person has no account yet. */
  personId?: number | null;
  /** Person who made the link; null for the service itself. */
  createdBy?: number | null;
  lifetimeMs: number;
}

export interface IssuedLink {
  id: number;
  /** Token, which only this response contains. */
  token: string;
  /** URL for a person: a page of Studio with the token in its fragment. */
  link: string;
  expiresAt: string;
}

export interface RedeemedLink {
  id: number;
  personId: number | null;
}

/** @throws LINK_EXPIRED */
function requireLink(row: RedeemedLink | undefined): RedeemedLink {
  if (row) return row;
  throw new ActionError("LINK_EXPIRED");
}

export type Links = ReturnType<typeof createLinks>;

/** @param baseUrl URL of the service for people, never taken from a request */
export function createLinks({ db, baseUrl }: { db: DataSource; baseUrl: string }) {
  return {
    /** Creates a link. Pass the executor of the transaction that also creates the invitation of the link. */
    async issue({ kind, personId = null, createdBy = null, lifetimeMs }: NewLink, executor: Executor = db) {
      const token = newSecret(`svc_${kind}`);
      const values = [kind, hashToken(token), personId, createdBy, lifetimeMs];
      const [row] = await rows<{ id: number; expiresAt: Date }>(executor, INSERT_LINK, values);
      const linkUrl = `${baseUrl}/studio/${PAGE_BY_LINK_KIND[kind]}#token=${token}`;
      const issuedLink: IssuedLink = { id: row!.id, token, link: linkUrl, expiresAt: row!.expiresAt.toISOString() };
      return issuedLink;
    },

    /**
     * Marks the link as used. Pass the executor of the transaction that does the work of the link: if the transaction
     * fails, the link stays valid.
     * @throws REQUEST_INVALID if `token` is not a text; LINK_EXPIRED if the link is unknown, of another kind, used,
     *   revoked or expired
     */
    async redeem(token: unknown, kind: LinkKind, executor: Executor = db): Promise<RedeemedLink> {
      return requireLink((await rows<RedeemedLink>(executor, REDEEM_LINK, [hashToken(linkToken(token)), kind]))[0]);
    },

    /** Reads a valid link; the link stays valid. @throws as `redeem` */
    async peek(token: unknown, kind: LinkKind, executor: Executor = db): Promise<RedeemedLink> {
      return requireLink(
        (await rows<RedeemedLink>(executor, SELECT_VALID_LINK, [hashToken(linkToken(token)), kind]))[0],
      );
    },

    /** Revokes an unused link. Returns false if there was none. */
    async revoke(id: number, executor: Executor = db): Promise<boolean> {
      return (await rows(executor, REVOKE_LINKS, [id])).length > 0;
    },

    /** Revokes all unused links of a kind that the person can use. Null selects the links that belong to no person. */
    async revokeAll(kind: LinkKind, personId: number | null, executor: Executor = db): Promise<void> {
      await executor.query(REVOKE_ALL, [kind, personId]);
    },
  };
}

const TOKEN_MAX_CHARACTERS = 200;

/** @throws REQUEST_INVALID */
function linkToken(token: unknown): string {
  if (typeof token === "string" && token !== "" && token.length <= TOKEN_MAX_CHARACTERS) return token;
  throw new ActionError("REQUEST_INVALID", `token must be a text of 1 to ${TOKEN_MAX_CHARACTERS} characters`);
}
