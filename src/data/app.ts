/** Rows of an app, its settings one row a key, and its version snapshots. Never a GraphQL type: settings leave through rules alone. */
import { Column, CreateDateColumn, Entity, PrimaryColumn, PrimaryGeneratedColumn, UpdateDateColumn } from "typeorm";

@Entity("app")
export class AppRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "organization_id" })
  organizationId: number;

  @Column("text")
  name: string;

  /** null while the app is not published. */
  @Column("timestamptz", { name: "published_at", nullable: true })
  publishedAt: Date | null;

  @Column("bigint", { name: "starting_page_id", nullable: true })
  startingPageId: number | null;

  @Column("json", { nullable: true })
  hooks: unknown;

  @Column("boolean", { name: "is_template" })
  isTemplate: boolean;

  @Column("json", { nullable: true })
  dependencies: unknown;

  @Column("text", { nullable: true })
  icon: string | null;

  @Column("boolean", { name: "is_system_template" })
  isSystemTemplate: boolean;

  @Column("boolean", { name: "is_hidden" })
  isHidden: boolean;

  /** The app's data key, wrapped by SETTINGS_KEY; null until a first private setting is written. */
  @Column("bytea", { name: "data_key", nullable: true, select: false })
  dataKey: Buffer | null;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;

  @UpdateDateColumn({ name: "updated_at", type: "timestamptz" })
  updatedAt: Date;
}

@Entity("setting")
export class SettingRow {
  @PrimaryColumn("bigint", { name: "app_id" })
  appId: number;

  /** The key as rules/setting-key-text.ts writes it, so that every JavaScript string has a place in a text column. */
  @PrimaryColumn("text")
  key: string;

  /** JSON text of a public value; null for the other tiers. */
  @Column("text", { nullable: true })
  value: string | null;

  /** Encrypted JSON text of a private or protected value; null for a public one. */
  @Column("bytea", { nullable: true })
  sealed: Buffer | null;

  @Column("timestamptz", { name: "updated_at" })
  updatedAt: Date;

  @Column("bigint", { name: "updated_by", nullable: true })
  updatedBy: number | null;
}

@Entity("app_version")
export class AppVersionRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "app_id" })
  appId: number;

  @Column("bigint", { name: "person_id", nullable: true })
  personId: number | null;

  /** What it was taken for: create, publish or pre-restore. */
  @Column("text")
  action: string;

  /** The app's own fields at the time. */
  @Column("json")
  data: Record<string, unknown>;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;
}
