/**
 * A dedicated worker for each run, in a page whose document is the host's alone. Costs a third of a document, and holds
 * code that needs the language and little beside it (worker-globals.ts): three walls part it from everything else, each enough by
 * itself. Its global scope has no other names, its origin is nobody's, and the page's policy lets nothing be loaded.
 */
import { answerDocument, callHarness, installHarness, navigate } from "./fresh-document.js";
import { WORKER_HARNESS } from "./harness.js";
import type { Room, RoomOptions } from "./room.js";

const POLICY = {
  name: "Content-Security-Policy",
  value: "default-src 'none'; script-src 'unsafe-eval'; worker-src data:",
};

export function createWorkerRoom({ session, origin }: RoomOptions): Room {
  let harnessId: string | null = null;

  session.on("Fetch.requestPaused", ({ requestId }) => answerDocument(session, requestId, [POLICY]));

  async function open(): Promise<string> {
    const { loaded } = await navigate(session, `${origin}/`);
    const [id] = await Promise.all([installHarness(session, WORKER_HARNESS), loaded]);
    return id;
  }

  return {
    async settle() {
      // No wider: the worker's own start would pass through this process as well.
      await session.send("Fetch.enable", { patterns: [{ urlPattern: `${origin}/` }] });
    },

    async renew() {
      harnessId ??= await open();
      return (await callHarness(session, harnessId, "renew", [])) === true;
    },

    run({ sourceName = "action.js", source, payload, settings }) {
      return callHarness(session, harnessId!, "run", [source, sourceName, payload, settings]);
    },

    explain: (outcome) => outcome,
    stop: () => {},
  };
}
