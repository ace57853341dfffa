/** Sizes of the batches in which jobs read and delete rows, so that no statement exceeds its time limit. */
import { isStatementTimeout } from "./database.js";

/** Number of rows in the next batch of a job. A batch that took too long halves it, and a batch that succeeded doubles it again. */
export class AdaptiveBatchSize {
  private rows: number;

  /** @param max number of rows in the first batch, and maximum number of rows */
  constructor(private readonly max: number) {
    this.rows = max;
  }

  get current(): number {
    return this.rows;
  }

  grow(): void {
    this.rows = Math.min(this.max, this.rows * 2);
  }

  /** Halves the size. Returns false if the last batch already had a single row. */
  shrink(): boolean {
    const canShrink = this.rows > 1;
    this.rows = Math.max(1, Math.floor(this.rows / 2));
    return canShrink;
  }
}

/**
 * Repeats a statement that deletes one batch of rows, until it finds no more rows or the job is stopped.
 * @param max maximum number of rows in a batch
 * @param deleteBatch deletes at most `limit` rows and returns the number of deleted rows
 * @throws the time limit of a statement that deletes a single row, and all other errors
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
