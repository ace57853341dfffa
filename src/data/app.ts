/** Rows of an app, without its settings, which only rules may return. No behaviour. */
import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn, UpdateDateColumn } from "typeorm";

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

  /** Time of the last change of any setting; null if none was ever written. No part of the app resource, so reads leave it out. */
  @Column("timestamptz", { name: "settings_updated_at", nullable: true, select: false })
  settingsUpdatedAt: Date | null;

  /** The number of the last change of an underscore setting; kept by the database itself. */
  @Column({ type: "bigint", name: "secrets_version", update: false, default: 0 })
  secretsVersion: number;

  /** Values that were replaced up to that change are not known any more. */
  @Column({ type: "bigint", name: "secrets_forgotten", update: false, default: 0 })
  secretsForgotten: number;

  /** Origins of pages elsewhere that may use the app. */
  @Column({ type: "text", array: true, select: false, update: false, insert: false })
  origins: string[];

  /** Since when none of its schedules is due; null: they are. */
  @Column({ type: "timestamptz", name: "schedules_paused_at", nullable: true, update: false })
  schedulesPausedAt: Date | null;

  /** The app's data key, wrapped by SETTINGS_KEY; null until a first private setting is written. */
  @Column("bytea", { name: "data_key", nullable: true, select: false })
  dataKey: Buffer | null;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;

  @UpdateDateColumn({ name: "updated_at", type: "timestamptz" })
  updatedAt: Date;
}
