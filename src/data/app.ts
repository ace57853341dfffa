/** Entity of the table `app`. The app's settings are in other tables. */
import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn, UpdateDateColumn } from "typeorm";

/**
 * Value of `app_stage.expires_at` for a closed stage. A stage is an app with the same definitions as another app. A closed stage was removed
 * by a user or has expired: its credentials are invalid, and its data will be deleted.
 */
export const CLOSED_STAGE_EXPIRY_SQL = "'-infinity'::timestamptz";

/** Returns an SQL condition: the app is a closed stage. `appId` is the SQL expression of the app's ID. */
export const isClosedStageSql = (appId: string): string =>
  `EXISTS (SELECT FROM app_stage s WHERE s.app_id = ${appId} AND s.expires_at = ${CLOSED_STAGE_EXPIRY_SQL})`;

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

  /** True if a request that publishes an action must state that the tests of the draft passed (`tested`). */
  @Column("boolean", { name: "requires_tests", default: false })
  requiresTests: boolean;

  /** Time of the last change of any setting; null if there was none. API responses about an app do not contain this time. */
  @Column("timestamptz", { name: "settings_updated_at", nullable: true, select: false })
  settingsUpdatedAt: Date | null;

  /** Version number of the app's secrets. The database increases it whenever a private or protected setting changes. */
  @Column({ type: "bigint", name: "secrets_version", update: false, default: 0 })
  secretsVersion: number;

  /** Highest version of a replaced secret that the database has deleted. Replaced secrets of this and older versions may be missing. */
  @Column({ type: "bigint", name: "secrets_forgotten", update: false, default: 0 })
  secretsForgotten: number;

  /** Origins of pages outside of the service that may start sessions of the app's visitors. */
  @Column({ type: "text", array: true, select: false, update: false, insert: false })
  origins: string[];

  @Column({ type: "timestamptz", name: "schedules_paused_at", nullable: true, update: false })
  schedulesPausedAt: Date | null;

  /** Key that encrypts the app's settings, encrypted with SETTINGS_KEY; null if the app has no encrypted settings yet. */
  @Column("bytea", { name: "data_key", nullable: true, select: false })
  dataKey: Buffer | null;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;

  @UpdateDateColumn({ name: "updated_at", type: "timestamptz" })
  updatedAt: Date;
}
