/** Entity of the table `action`, which stores the draft and the live version of each action. */
import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn } from "typeorm";
import type {
  ActionAccess,
  ActionSource,
  Concurrency,
  Debounce,
  Environment,
  StoredAsset,
  Trigger,
} from "./action-types.js";

/** Row of an action's draft or live version. In the row of a live version, `masterId` is the ID of the draft. */
@Entity("action")
export class ActionRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "app_id" })
  appId: number;

  @Column("bigint", { name: "master_id", nullable: true })
  masterId: number | null;

  /** In a draft's row: ID of its live version; null before the first publish. An unpublish keeps the ID. A database trigger sets it. */
  @Column("bigint", { name: "live_id", nullable: true })
  liveId: number | null;

  @Column("text")
  name: string;

  @Column("text", { nullable: true })
  description: string | null;

  @Column("text")
  code: string;

  @Column("boolean")
  active: boolean;

  @Column("text")
  environment: Environment;

  /** Version of the API for which the code is written: `v3`, or `v2` in rows of older releases. */
  @Column("text", { name: "action_version" })
  actionVersion: string;

  @Column("json")
  triggers: Trigger[];

  @Column("json")
  dependencies: string[];

  @Column("json")
  assets: StoredAsset[];

  @Column("text", { nullable: true })
  frequency: string | null;

  @Column("text", { nullable: true })
  timezone: string | null;

  @Column("json", { nullable: true })
  concurrency: Concurrency | null;

  @Column("json", { nullable: true })
  debounce: Debounce | null;

  @Column("integer", { name: "timeout_ms", nullable: true })
  timeoutMs: number | null;

  @Column("integer", { name: "jitter_seconds", nullable: true })
  jitterSeconds: number | null;

  /** Origins to which the code may send requests by `request()`. This list does not limit `fetch`. */
  @Column("json", { name: "integration_origins" })
  integrationOrigins: string[];
  /** Callers who can run the action by its `manual` trigger. null means everyone. */
  @Column("json", { nullable: true })
  access: ActionAccess | null;

  @Column("json", { nullable: true })
  source: ActionSource | null;

  @Column("timestamptz", { name: "last_run_at", nullable: true })
  lastRunAt: Date | null;

  @CreateDateColumn({ name: "created_at", type: "timestamptz" })
  createdAt: Date;

  @Column("timestamptz", { name: "updated_at" })
  updatedAt: Date;
}
