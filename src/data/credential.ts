/** Kinds of credentials, as the database stores them. */

export const CREDENTIAL_KINDS = ["editor", "admin", "api", "task", "viewer", "live"] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];
