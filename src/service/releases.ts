/** List of the resources that a process has acquired. A stop releases them, the newest first. */
import type { Logger } from "pino";

export class ReleaseStack {
  private readonly stack = new AsyncDisposableStack();

  constructor(private readonly log: Logger) {}

  /** Adds a resource. A failed release is logged with its name; the others are still released. */
  add(name: string, release: () => unknown): void {
    this.stack.defer(async () => {
      this.log.debug({ part: name }, "stopping");
      try {
        await release();
      } catch (error) {
        this.log.error({ err: error, part: name }, "a part did not stop");
      }
    });
  }

  /** Releases everything, one after the other. */
  all(): Promise<void> {
    return this.stack.disposeAsync();
  }
}
