/** Kinds of credentials as stored in their rows. */

export const CREDENTIAL_KINDS = ["editor", "admin", "api", "task", "viewer", "live"] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];
