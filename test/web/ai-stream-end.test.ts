/** Tests that the request for a stream of `Svc.AI` ends when an action stops reading the stream. Runs the package without a browser. */
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { build, stop } from "esbuild";

const WEB_FOLDER = fileURLToPath(new URL("../../../src/web", import.meta.url));
const BUNDLE_ENTRY = `import "./packages/svc-ai.ts"; export { parseJsonLines } from "./runtime/lines.ts";`;

interface Completions {
  AI: { completions(options: object): AsyncIterable<unknown> };
}

describe("a stream of Svc.AI that is left early", () => {
  const page = globalThis as { Svc?: object };
  after(async () => {
    delete page.Svc;
    await stop();
  });

  it("ends its request", async () => {
    const stdin = { contents: BUNDLE_ENTRY, resolveDir: WEB_FOLDER, loader: "ts" as const };
    const { outputFiles } = await build({ stdin, bundle: true, format: "esm", write: false });
    const lines = () => bundledModule.parseJsonLines({ body });
    const connection = { appId: () => 1, lines };
    page.Svc = { [Symbol.for("svc.connection")]: connection };
    const bundledModule = await import(
      `data:text/javascript;base64,${Buffer.from(outputFiles[0]!.contents).toString("base64")}`
    );
    let isCancelled = false;
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"text":"a"}\n{"text":"b"}\n')),
      cancel: () => {
        isCancelled = true;
      },
    });
    const streamedParts: unknown[] = [];
    for await (const part of (page.Svc as Completions).AI.completions({ stream: true })) {
      streamedParts.push(part);
      break;
    }
    expect([streamedParts, isCancelled]).to.deep.equal([[{ type: "text", text: "a" }], true]);
  });
});
