/**
 * The window of a page, at which nobody looks: while it is hidden nothing in it is drawn, and drawing a document takes longer than most
 * runs do. What a document sees of it is for in-page/visible-always.ts.
 */
import type { SandboxOptions } from "./sandbox.js";

/** A frame's time: what ends sooner has nothing drawn. */
const DRAWN_AFTER_MS = 16;

export interface PageWindow {
  /** Hides it, where the browser can; in another it is drawn all the time. */
  settle(): Promise<void>;
  /** A run begins: what goes on for longer has its frames. */
  begin(): void;
  /** The run has ended. */
  end(): void;
  /** Hides it again where it was shown, before anything else is done with the page. */
  renew(): void;
}

export function createPageWindow(options: Pick<SandboxOptions, "connection" | "session" | "targetId">): PageWindow {
  const { connection, session, targetId } = options;
  let windowId: number | null = null;
  let shown = true;
  let timer: NodeJS.Timeout | undefined;

  async function hide(): Promise<void> {
    shown = false;
    await Promise.all([
      connection.send("Browser.setWindowBounds", { windowId: windowId!, bounds: { windowState: "minimized" } }),
      // Without the focus, which goes with the window, a document gets no event when an element of it is focused.
      session.send("Page.bringToFront"),
    ]);
  }

  function show(): void {
    shown = true;
    connection
      .send("Browser.setWindowBounds", { windowId: windowId!, bounds: { windowState: "normal" } })
      .catch(() => {});
  }

  return {
    async settle() {
      try {
        ({ windowId } = await connection.send("Browser.getWindowForTarget", { targetId }));
        await hide();
      } catch {
        windowId = null;
      }
    },
    begin() {
      if (windowId !== null) timer = setTimeout(show, DRAWN_AFTER_MS);
    },
    end: () => clearTimeout(timer),
    renew() {
      if (windowId !== null && shown) hide().catch(() => {});
    },
  };
}
