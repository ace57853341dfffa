/**
 * Where in the ledger its unfinished runs begin, so that a look at the queue leaves out the partitions of other days. Knows ids and no
 * run's state.
 */
import type { DataSource } from "typeorm";
import { preparedRows } from "../../data/database.js";

/** It only rises, and too low a number costs a look at a few partitions more. */
const KNOWN_MS = 1_000;
/** Numbers that transactions under way may have been given and not written yet. */
const UNDER_WAY = 100_000;

/* In the order of the index run_live and of no other: the state is a range of one. */
const first = (state: string) => `
    (SELECT id FROM run WHERE state BETWEEN '${state}' AND '${state}' AND finished_at IS NULL ORDER BY state, id LIMIT 1)`;

const FIRST = `
  SELECT least(
    ${first("queued")},
    ${first("running")},
    (SELECT last_value - ${UNDER_WAY} FROM run_id_seq)) AS id`;

/** Answers an id below which no run is queued, nor may be put back into the queue. */
export function createLiveRuns(db: DataSource): () => Promise<number> {
  let known = Number.MIN_SAFE_INTEGER;
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<number> | null = null;

  async function ask(): Promise<number> {
    const at = performance.now();
    known = (await preparedRows<{ id: number }>(db, "first-live-run", FIRST, []))[0]!.id;
    askedAt = at;
    return known;
  }

  return async () => {
    if (performance.now() - askedAt <= KNOWN_MS) return known;
    asking ??= ask().finally(() => {
      asking = null;
    });
    return asking;
  };
}
