/**
 * Entity of the table `app`. The app's settings are in another table, because their tier (public, private or protected)
 * decides which callers can read them.
 */
import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn, UpdateDateColumn } from "typeorm";

/**
 * Value of `app_stage.expires_at` that marks a stage as closed (removed by a user). A closed stage can only be deleted.
 * Its `root_id` is its own ID, so that it belongs to no group, and releases its name. Its credentials are invalid.
 */
export const CLOSED_STAGE_EXPIRY_SQL = "'-infinity'::timestamptz";

/** Returns the SQL condition that is true if an app is a closed stage. @param appId SQL expression with the ID of the app */
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

  /** True if an action can be published only after its tests have passed. */
  @Column("boolean", { name: "requires_tests", default: false })
  requiresTests: boolean;

  /**
   * Time of the last change of any setting; null if there was none. Queries load it only on request, because API
   * responses about an app have no such field.
   */
  @Column("timestamptz", { name: "settings_updated_at", nullable: true, select: false })
  settingsUpdatedAt: Date | null;

  /** Version number of the app's secrets: the database increases it whenever a private or protected setting changes. */
  @Column({ type: "bigint", name: "secrets_version", update: false, default: 0 })
  secretsVersion: number;

  /** Highest `secretsVersion` for which the service has already deleted all replaced secret values. */
  @Column({ type: "bigint", name: "secrets_forgotten", update: false, default: 0 })
  secretsForgotten: number;

  /** Origins of pages outside of the service that may start sessions of the app's visitors. */
  @Column({ type: "text", array: true, select: false, update: false, insert: false })
  origins: string[];

  /** Time at which the app's schedules were paused; null if they are not paused. */
  @Column({ type: "timestamptz", name: "schedules_paused_at", nullable: true, update: false })
  schedulesPausedAt: Date | null;

  /** Data key of the app, encrypted with SETTINGS_KEY; null until the first private setting is written. */
  @Column("bytea", { name: "data_key", nullable: true, select: false })
  dataKey: Buffer | null;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;

  @UpdateDateColumn({ name: "updated_at", type: "timestamptz" })
  updatedAt: Date;
}
