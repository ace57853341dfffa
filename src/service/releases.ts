/** Stack of the resources that a process has acquired. A stop releases them, the newest first. */
import type { Logger } from "pino";

export class ResourceReleaseStack {
  private readonly stack = new AsyncDisposableStack();

  constructor(private readonly log: Logger) {}

  /** Adds a resource. If its release fails, logs the failure with `name`; the other resources are still released. */
  add(name: string, release: () => unknown): void {
    this.stack.defer(async () => {
      this.log.debug({ part: name }, "stopping");
      try {
        await release();
      } catch (error) {
        this.log.error({ err: error, part: name }, "a part of the service could not be stopped");
      }
    });
  }

  releaseAll(): Promise<void> {
    return this.stack.disposeAsync();
  }
}
