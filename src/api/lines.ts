/**
 * Response that an operation sends line by line while it runs; each line is a JSON value. If the client reads slowly, the operation waits.
 * The wait ends when the operation's time limit is over or reader-pace.ts disconnects the client.
 */
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { runInBackground } from "../background.js";

export class JsonLineStream {
  /** @param runOperation runs the operation. It sends each line with `send`, which resolves when the client can receive the next line */
  constructor(private readonly runOperation: (send: (line: object) => Promise<void>) => Promise<void>) {}

  /**
   * Starts the operation. If the operation fails, the failure is logged, and the connection closes before the last
   * line, so that the client detects the failure.
   */
  createStream(): Readable {
    const stream = new PassThrough();
    const closeController = new AbortController();
    stream.once("close", () => closeController.abort());
    const send = async (line: object): Promise<void> => {
      if (stream.destroyed) throw new Error("the client disconnected before the end of the response");
      if (!stream.write(`${JSON.stringify(line)}\n`)) await once(stream, "drain", { signal: closeController.signal });
    };
    const workPromise = this.runOperation(send).then(
      () => stream.end(),
      (error: Error) => {
        // Does not log the failure if the client has disconnected, which makes the operation fail.
        if (stream.destroyed) return;
        stream.destroy(error);
        throw error;
      },
    );
    runInBackground(workPromise);
    return stream;
  }
}
