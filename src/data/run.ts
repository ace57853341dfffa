/** Rows of the ledger: every run before it starts, who holds it, and the one log entry that it ends in. */
import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from "typeorm";
import type { Copy } from "./action.js";

export const RUN_STATES = ["queued", "running", "completed", "failed", "skipped", "cancelled"] as const;
export type RunState = (typeof RUN_STATES)[number];
export type RunTrigger = "manual" | "schedule" | "log" | "analytics";

/** A process that takes part; its runs are lost when its lease lapses. */
@Entity("instance")
export class InstanceRow {
  @PrimaryColumn("uuid")
  id: string;

  @Column("text", { array: true })
  roles: string[];

  @Column("timestamptz", { name: "started_at" })
  startedAt: Date;

  @Column("timestamptz", { name: "lease_until" })
  leaseUntil: Date;
}

@Entity("run")
export class RunRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "app_id" })
  appId: number;

  /** The copy that runs. No foreign key: the ledger outlives the action. */
  @Column("bigint", { name: "action_id" })
  actionId: number;

  @Column("text")
  copy: Copy;

  @Column("text")
  trigger: RunTrigger;

  @Column("json")
  payload: unknown;

  @Column("text")
  state: RunState;

  /** The instance that runs it; set exactly while `running`, and the fence of every later write. */
  @Column("uuid", { nullable: true })
  holder: string | null;

  /** Who started it; null for schedules and events. */
  @Column("bigint", { name: "person_id", nullable: true })
  personId: number | null;

  @Column("bigint", { name: "credential_id", nullable: true })
  credentialId: number | null;

  @Column("text", { name: "idempotency_key", nullable: true })
  idempotencyKey: string | null;

  /** The scheduled moment that this row accounts for; unique for the action. */
  @Column("timestamptz", { nullable: true })
  tick: Date | null;

  /** How many ticks, from `tick` on, this row accounts for: more than one only after a long pause. */
  @Column("integer", { name: "tick_count" })
  tickCount: number;

  /** Why it was skipped; null on every other state. */
  @Column("text", { nullable: true })
  reason: string | null;

  /** The log event that started it. */
  @Column("bigint", { name: "event_id", nullable: true })
  eventId: number | null;

  /** The run that emitted the event, or whose task token asked for this run. */
  @Column("bigint", { name: "cause_run_id", nullable: true })
  causeRunId: number | null;

  /** The first run of the chain of causes; null on that run itself. */
  @Column("bigint", { name: "chain_id", nullable: true })
  chainId: number | null;

  /** How many causes precede it. */
  @Column("smallint")
  depth: number;

  /** The run whose payload this one repeats. */
  @Column("bigint", { name: "replay_of", nullable: true })
  replayOf: number | null;

  /** The snapshot whose code runs instead of the copy's. */
  @Column("bigint", { name: "version_id", nullable: true })
  versionId: number | null;

  @Column("timestamptz", { name: "queued_at" })
  queuedAt: Date;

  @Column("timestamptz", { name: "started_at", nullable: true })
  startedAt: Date | null;

  @Column("timestamptz", { name: "finished_at", nullable: true })
  finishedAt: Date | null;
}

@Entity("execution_log")
export class ExecutionLogRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id: number;

  @Column("bigint", { name: "app_id" })
  appId: number;

  @Column("bigint", { name: "task_id" })
  taskId: number;

  /** Unique: a run ends in exactly one entry. */
  @Column("bigint", { name: "run_id" })
  runId: number;

  @Column("text")
  type: "app.task.completed" | "app.task.failed";

  @Column("json")
  data: Record<string, unknown>;

  @Column("timestamptz", { name: "created_at" })
  createdAt: Date;
}
