/** Hides the window of a document, because drawing takes longer than most runs (docs/internals/adr.md, 7). */
import type { SandboxOptions } from "./sandbox.js";

/** Duration of a display frame. During a shorter run, the window stays hidden. */
const DISPLAY_FRAME_MS = 16;

export class PageWindowHider {
  private windowId: number | null = null;
  private isShown = true;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: Pick<SandboxOptions, "connection" | "session" | "targetId">) {}

  async prepare(): Promise<void> {
    const { connection, targetId } = this.options;
    try {
      ({ windowId: this.windowId } = await connection.send("Browser.getWindowForTarget", { targetId }));
      await this.hide();
    } catch {
      this.windowId = null;
    }
  }

  /** Shows the window if the run takes longer than a frame, so that the browser calls animation frame callbacks. */
  onRunStart(): void {
    if (this.windowId !== null) this.timer = setTimeout(() => this.show(), DISPLAY_FRAME_MS);
  }

  onRunEnd(): void {
    clearTimeout(this.timer);
  }

  reset(): void {
    // The command fails only if the page has closed.
    if (this.windowId !== null && this.isShown) this.hide().catch(() => {});
  }

  private async hide(): Promise<void> {
    const { connection, session } = this.options;
    this.isShown = false;
    await Promise.all([
      connection.send("Browser.setWindowBounds", {
        windowId: this.windowId!,
        bounds: { windowState: "minimized" },
      }),
      // A hidden window has no focus, and a document without focus gets no focus events. This command restores the focus.
      session.send("Page.bringToFront"),
    ]);
  }

  private show(): void {
    this.isShown = true;
    // The command fails only if the page has closed.
    this.options.connection
      .send("Browser.setWindowBounds", { windowId: this.windowId!, bounds: { windowState: "normal" } })
      .catch(() => {});
  }
}
