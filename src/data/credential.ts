/** Row of one credential: the token's hash and what it stands for. The token itself is never stored. */
import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn } from "typeorm";

export const CREDENTIAL_KINDS = ["editor", "admin", "api", "task", "viewer", "live"] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

@Entity("credential")
export class CredentialRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("text")
  kind: CredentialKind;

  /** SHA-256 of the token. */
  @Column("bytea")
  hash: Buffer;

  @Column("text", { nullable: true })
  name: string | null;

  /** Set for api, task, viewer and live; editors and admins belong to no single app. */
  @Column("bigint", { name: "app_id", nullable: true })
  appId: number | null;

  @Column("bigint", { name: "person_id", nullable: true })
  personId: number | null;

  /** The run that a task token was made for. */
  @Column("bigint", { name: "run_id", nullable: true })
  runId: number | null;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;

  @Column("timestamptz", { name: "expires_at", nullable: true })
  expiresAt: Date | null;

  @Column("timestamptz", { name: "revoked_at", nullable: true })
  revokedAt: Date | null;

  /** Given out by the app's own pages (operations/page-sessions.ts), not made by an editor. */
  @Column("boolean", { name: "page_session" })
  pageSession: boolean;
}
