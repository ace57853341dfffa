/** Tests the processes that decode pictures: the account under which they run, and how they end. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import pino from "pino";
import {
  InvalidPictureError,
  PictureProcessBusyError,
  PictureProcessor,
  type PictureResizeOptions,
} from "../../src/engine/pictures.js";
import { longTest } from "../harness/samples.js";

const CHILD_PROGRAM = fileURLToPath(new URL("../../src/engine/pictures/child.js", import.meta.url));
const GIF = Buffer.from("R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==", "base64");
const RESIZE_OPTIONS: PictureResizeOptions = { width: null, format: "png", quality: 80 };

describe("the process that decodes a picture", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-pictures-"));
    chmodSync(folder, 0o777);
  });
  after(() => rmSync(folder, { recursive: true }));

  /** Creates a processor whose processes execute `code` before they decode pictures. Collects the messages of its log. */
  function processorWith(name: string, code: string) {
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
    const program = join(folder, `${name}.mjs`);
    writeFileSync(
      program,
      `import { mkdirSync, writeSync } from "node:fs";\n${code}\nawait import(${JSON.stringify(CHILD_PROGRAM)});`,
    );
    return { lines, processor: new PictureProcessor({ log, program }) };
  }
  const convert = (processor: PictureProcessor, source = Readable.from([GIF])) =>
    processor.resize(source, "image/gif", RESIZE_OPTIONS, 10_000);
  const errorOf = (conversion: Promise<unknown>): Promise<unknown> =>
    conversion.then(
      () => expect.fail("the picture was converted"),
      (error: unknown) => error,
    );

  for (const [name, cause, failure] of [
    ["killed-once", "is killed", 'process.kill(process.pid, "SIGKILL");'],
    [
      "no-memory-once",
      "lacks memory",
      '{ writeSync(2, "sh: 1: exec: Cannot allocate memory\\n"); process.exit(126); }',
    ],
  ] as const)
    longTest(`keeps its own account if the first process ${cause}, and the next picture succeeds`, async () => {
      const mark = JSON.stringify(join(folder, name));
      const { lines, processor } = processorWith(
        name,
        `let isFirst = true; try { mkdirSync(${mark}) } catch { isFirst = false } if (isFirst) ${failure}`,
      );
      const source = Readable.from([GIF]);
      // As root, the service first starts a process that tests another account. Here, this process ends, so the first conversion fails.
      if (process.getuid?.() === 0) {
        expect(await errorOf(convert(processor, source))).to.be.instanceOf(PictureProcessBusyError);
        expect(source.destroyed).to.equal(true);
      }
      expect((await convert(processor)).subarray(1, 4).toString()).to.equal("PNG");
      // If another account cannot read the folder of this installation, the log has a warning even without the failure. So the test
      // compares the log with that of a processor without a failure.
      const undisturbed = processorWith("undisturbed", "");
      await convert(undisturbed.processor);
      expect(lines).to.deep.equal(undisturbed.lines);
    });

  it("runs under the service's account, with a warning, if another account cannot run its program", async () => {
    const hasDecoderUid = "process.getuid() === 64050";
    const { lines, processor } = processorWith("unreadable", `if (${hasDecoderUid}) process.exit(1);`);
    expect((await convert(processor)).subarray(1, 4).toString()).to.equal("PNG");
    expect(lines).to.have.length(process.getuid?.() === 0 ? 1 : 0);
  });

  longTest("rejects the picture at its CPU time limit, but not if something else ends the process", async () => {
    const { processor } = processorWith(
      "ended",
      `const { resize } = JSON.parse(process.argv.at(-1));
       if (resize.quality === 81) process.kill(process.pid, "SIGXCPU");
       if (resize.quality === 82) process.kill(process.pid, "SIGKILL");`,
    );
    const errorAt = (quality: number) =>
      errorOf(processor.resize(Readable.from([GIF]), "image/gif", { ...RESIZE_OPTIONS, quality }, 10_000));
    expect(await errorAt(81)).to.be.instanceOf(InvalidPictureError);
    expect(await errorAt(82)).to.be.instanceOf(PictureProcessBusyError);
    expect((await convert(processor)).subarray(1, 4).toString()).to.equal("PNG");
  });

  it("does not start after a stop", async () => {
    const { processor } = processorWith("stopped", "");
    processor.stop();
    expect(await errorOf(convert(processor))).to.be.instanceOf(PictureProcessBusyError);
  });
});
