/** Rows of who exists: organizations, people, and what each person edits. No behaviour. */
import { Column, CreateDateColumn, Entity, PrimaryColumn, PrimaryGeneratedColumn } from "typeorm";

@Entity("organization")
export class OrganizationRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("text")
  name: string;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;
}

/** An editor, an administrator or an app user: what a person may do hangs on the credential, not on this row. */
@Entity("person")
export class PersonRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "organization_id" })
  organizationId: number;

  @Column("text", { name: "first_name" })
  firstName: string;

  @Column("text", { name: "last_name" })
  lastName: string;

  @Column("text")
  email: string;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;
}

@Entity("app_editor")
export class AppEditorRow {
  @PrimaryColumn("bigint", { name: "app_id" })
  appId: number;

  @PrimaryColumn("bigint", { name: "person_id" })
  personId: number;
}
