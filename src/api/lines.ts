/**
 * An answer whose lines are sent one by one, each a JSON value, while its operation goes on. A slow reader only slows the operation, whose
 * own time limit ends both. Knows no operation.
 */
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { runInBackground } from "../background.js";

export class Lines {
  /** @param perform sends the lines by its argument, which resolves when the next one can be sent */
  constructor(private readonly perform: (send: (line: object) => Promise<void>) => Promise<void>) {}

  /** Starts the operation. Its failure ends the connection, so that the reader misses the last line. */
  stream(): Readable {
    const stream = new PassThrough();
    const send = async (line: object): Promise<void> => {
      if (stream.destroyed) throw new Error("the reader has disconnected");
      if (!stream.write(`${JSON.stringify(line)}\n`))
        await Promise.race([once(stream, "drain"), once(stream, "close")]);
    };
    const performed = this.perform(send).then(
      () => stream.end(),
      (error: Error) => stream.destroy(error),
    );
    runInBackground(performed);
    return stream;
  }
}
