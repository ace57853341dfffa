/** The kinds of credential, as their rows name them. */

export const CREDENTIAL_KINDS = ["editor", "admin", "api", "task", "viewer", "live"] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];
