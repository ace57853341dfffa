/**
 * One-time links to set up the service, accept an invitation or reset a passphrase. The database stores only a hash of the link's token.
 * The token is in the URL's fragment, which browsers do not send; Studio's page sends the token by POST.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { ActionError } from "../../errors.js";
import { describeType } from "../../rules/describe-value.js";
import { generateSecret, hashToken } from "../access/tokens.js";

export type OneTimeLinkKind = "setup" | "invitation" | "reset";

const PAGE_BY_LINK_KIND: Record<OneTimeLinkKind, string> = { setup: "setup", invitation: "invitation", reset: "reset" };

const INSERT_LINK = `
  INSERT INTO one_time_link (kind, hash, person_id, created_by, expires_at)
  VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond') RETURNING id, expires_at AS "expiresAt"`;

const IS_VALID_LINK = "hash = $1 AND kind = $2 AND used_at IS NULL AND revoked_at IS NULL AND expires_at > now()";
const REDEEM_LINK = `UPDATE one_time_link SET used_at = now() WHERE ${IS_VALID_LINK} RETURNING id, person_id AS "personId"`;
const SELECT_VALID_LINK = `SELECT id, person_id AS "personId" FROM one_time_link WHERE ${IS_VALID_LINK}`;
const REVOKE_LINKS =
  "UPDATE one_time_link SET revoked_at = now() WHERE id = $1 AND used_at IS NULL AND revoked_at IS NULL RETURNING id";
const REVOKE_LINKS_OF_PERSON = `
  UPDATE one_time_link SET revoked_at = now()
   WHERE kind = $1 AND person_id IS NOT DISTINCT FROM $2 AND used_at IS NULL AND revoked_at IS NULL`;

export interface NewOneTimeLink {
  kind: OneTimeLinkKind;
  /** Person who can use the link; null for set-up links and invitations, which belong to no account. */
  personId?: number | null;
  /** Person who created the link; null if the service created it. */
  createdBy?: number | null;
  lifetimeMs: number;
}

export interface IssuedOneTimeLink {
  id: number;
  /** Token of the link. Only this object contains the token: the database stores only a hash. */
  token: string;
  /** Complete URL to open in a browser: a page of Studio with the token in the fragment. */
  link: string;
  expiresAt: string;
}

export interface RedeemedOneTimeLink {
  id: number;
  personId: number | null;
}

function requireValidLink(row: RedeemedOneTimeLink | undefined): RedeemedOneTimeLink {
  if (row) return row;
  throw new ActionError("LINK_EXPIRED");
}

interface OneTimeLinksOptions {
  db: Db;
  /** URL at which people open the service. It comes from the configuration, never from a request. */
  baseUrl: string;
}

export class OneTimeLinks {
  constructor(private readonly options: OneTimeLinksOptions) {}

  /** Creates a one-time link. For an invitation, pass the executor of the transaction that creates the invitation. */
  async issue(
    { kind, personId = null, createdBy = null, lifetimeMs }: NewOneTimeLink,
    executor: SqlClient = this.options.db,
  ) {
    const token = generateSecret(`svc_${kind}`);
    const values = [kind, hashToken(token), personId, createdBy, lifetimeMs];
    const [row] = await rows<{ id: number; expiresAt: Date }>(executor, INSERT_LINK, values);
    const linkUrl = `${this.options.baseUrl}/studio/${PAGE_BY_LINK_KIND[kind]}#token=${token}`;
    const issuedLink: IssuedOneTimeLink = {
      id: row!.id,
      token,
      link: linkUrl,
      expiresAt: row!.expiresAt.toISOString(),
    };
    return issuedLink;
  }

  /**
   * Marks the link as used. Pass the executor of the transaction that performs the link's operation. If this transaction fails, the link
   * stays valid.
   * @throws REQUEST_INVALID if `token` is not a text of 1 to 200 characters
   * @throws LINK_EXPIRED if the link is unknown, of another kind, used, revoked or expired
   */
  async redeem(
    token: unknown,
    kind: OneTimeLinkKind,
    executor: SqlClient = this.options.db,
  ): Promise<RedeemedOneTimeLink> {
    return requireValidLink(
      (await rows<RedeemedOneTimeLink>(executor, REDEEM_LINK, [hashToken(requireTokenText(token)), kind]))[0],
    );
  }

  /** Reads a valid link without marking it as used. @throws the same errors as `redeem` */
  async readValidLink(
    token: unknown,
    kind: OneTimeLinkKind,
    executor: SqlClient = this.options.db,
  ): Promise<RedeemedOneTimeLink> {
    return requireValidLink(
      (await rows<RedeemedOneTimeLink>(executor, SELECT_VALID_LINK, [hashToken(requireTokenText(token)), kind]))[0],
    );
  }

  /** Revokes an unused link. Returns false if there is no unused link with this ID. */
  async revoke(id: number, executor: SqlClient = this.options.db): Promise<boolean> {
    return (await rows(executor, REVOKE_LINKS, [id])).length > 0;
  }

  /** Revokes all unused links of this kind that belong to this person. If `personId` is null, revokes those that belong to no account. */
  async revokeAll(
    kind: OneTimeLinkKind,
    personId: number | null,
    executor: SqlClient = this.options.db,
  ): Promise<void> {
    await executor.query(REVOKE_LINKS_OF_PERSON, [kind, personId]);
  }
}

const TOKEN_MAX_CHARACTERS = 200;

/** Checks that `token` is a string of a valid length, and returns it. @throws REQUEST_INVALID */
function requireTokenText(token: unknown): string {
  if (typeof token === "string" && token !== "" && token.length <= TOKEN_MAX_CHARACTERS) return token;
  // The message does not quote the value, which may be a secret.
  const expected = `"token" must be a text of 1 to ${TOKEN_MAX_CHARACTERS} characters`;
  throw new ActionError("REQUEST_INVALID", `${expected} (got ${describeType(token)})`);
}
