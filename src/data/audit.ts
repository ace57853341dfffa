/** Row of the trail: who changed what and when. Names of keys and ids, never values. */
import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn } from "typeorm";

@Entity("audit_entry")
export class AuditEntryRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "app_id" })
  appId: number;

  /** What happened, for example `appAction.v3.restore`. */
  @Column("text")
  type: string;

  @Column("bigint", { name: "person_id", nullable: true })
  personId: number | null;

  @Column("bigint", { name: "credential_id", nullable: true })
  credentialId: number | null;

  /** The action that was touched, where there is one. No foreign key: the trail outlives it. */
  @Column("bigint", { name: "action_id", nullable: true })
  actionId: number | null;

  @Column("json")
  data: Record<string, unknown>;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;
}
