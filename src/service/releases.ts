/** What a process has acquired and must give back, the newest first. Knows names, not what they stand for. */
import type { Logger } from "pino";

type Release = () => Promise<unknown> | unknown;

export class Releases {
  private readonly stack: { name: string; release: Release }[] = [];

  constructor(private readonly log: Logger) {}

  add(name: string, release: Release): void {
    this.stack.push({ name, release });
  }

  /** Gives everything back, one after the other; what fails is logged and keeps nothing else from being given back. */
  async all(): Promise<void> {
    for (let next = this.stack.pop(); next; next = this.stack.pop()) {
      const { name, release } = next;
      this.log.debug({ part: name }, "stopping");
      try {
        await release();
      } catch (error) {
        this.log.error({ err: error, part: name }, "a part did not stop");
      }
    }
  }
}
