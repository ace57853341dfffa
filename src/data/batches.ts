/** Adapts the number of rows in the batches that jobs read or delete, so that no statement exceeds its time limit. */
import { isStatementTimeout } from "./database.js";

/** Number of rows in the next batch. Call `shrink` after a batch that took too long, and `grow` after a batch that succeeded. */
export class AdaptiveBatchSize {
  private rows: number;

  /** @param max number of rows in the first batch, and maximum number of rows in a batch */
  constructor(private readonly max: number) {
    this.rows = max;
  }

  get current(): number {
    return this.rows;
  }

  grow(): void {
    this.rows = Math.min(this.max, this.rows * 2);
  }

  /** Halves the size. Returns false if the size was already one row. */
  shrink(): boolean {
    const canShrink = this.rows > 1;
    this.rows = Math.max(1, Math.floor(this.rows / 2));
    return canShrink;
  }
}

/**
 * Calls `deleteBatch` until it deletes fewer than `limit` rows or the job is stopped. Halves `limit` after a timeout.
 * @param max maximum of `limit`
 * @param deleteBatch deletes at most `limit` rows, and returns the number of deleted rows
 * @throws the timeout of a statement that deletes a single row, and all other errors
 */
export async function deleteInBatches(
  max: number,
  isStopped: () => boolean,
  deleteBatch: (limit: number) => Promise<number>,
): Promise<void> {
  const size = new AdaptiveBatchSize(max);
  while (!isStopped()) {
    const limit = size.current;
    try {
      if ((await deleteBatch(limit)) < limit) return;
      size.grow();
    } catch (error) {
      if (!isStatementTimeout(error) || !size.shrink()) throw error;
    }
  }
}
