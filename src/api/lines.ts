/**
 * A response that is sent line by line while its operation runs; each line is a JSON value. If the client reads slowly, the operation
 * waits, until its time limit ends or the client is disconnected (reader-pace.ts).
 */
import { once } from "node:events";
import { PassThrough, type Readable } from "node:stream";
import { runInBackground } from "../background.js";

export class Lines {
  /** @param perform sends the lines by its argument, which resolves when the next one can be sent */
  constructor(private readonly perform: (send: (line: object) => Promise<void>) => Promise<void>) {}

  /** Starts the operation. If it fails, the failure is logged and the connection ends without the last line. */
  stream(): Readable {
    const stream = new PassThrough();
    const closed = new AbortController();
    stream.once("close", () => closed.abort());
    const send = async (line: object): Promise<void> => {
      if (stream.destroyed) throw new Error("the client disconnected before the end of the response");
      if (!stream.write(`${JSON.stringify(line)}\n`)) await once(stream, "drain", { signal: closed.signal });
    };
    const performedWork = this.perform(send).then(
      () => stream.end(),
      (error: Error) => {
        // If the client has disconnected, the operation fails too; this failure is not logged.
        if (stream.destroyed) return;
        stream.destroy(error);
        throw error;
      },
    );
    runInBackground(performedWork);
    return stream;
  }
}
