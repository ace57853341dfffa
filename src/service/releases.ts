/** What a process has acquired and must give back, the newest first. Knows names, not what they stand for. */
import type { Logger } from "pino";

export class Releases {
  private readonly stack = new AsyncDisposableStack();

  constructor(private readonly log: Logger) {}

  /** What fails as it is given back is logged by its name, and keeps nothing else from being given back. */
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

  /** Gives everything back, one after the other. */
  all(): Promise<void> {
    return this.stack.disposeAsync();
  }
}
