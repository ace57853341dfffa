/** Reads a streamed completion of a language model. Masks secrets in the text, and passes the text on while the stream is still open. */
import { OutgoingError } from "../../engine/outgoing.js";
import type { SecretScanner } from "../../engine/secret-scan.js";
import type { AiCompletion, CompletionEventReader } from "../../rules/ai/answer.js";
import { AiError } from "../../rules/ai/failure.js";
import { ServerSentEventReader } from "../../rules/ai/provider-json.js";

/** Unsent text above this length is scanned again only after its length has doubled. So the total time of all scans stays linear. */
const ALWAYS_SCANNED_CHARACTERS = 1_024;

export class StreamedCompletionReader {
  private readonly events = new ServerSentEventReader();
  private text = "";
  /** Position in `text` up to which the text was already passed on. */
  private from = 0;
  /** Length in characters that the unsent text must reach before the next scan. */
  private nextScanLength = 0;
  private hasResponse = false;
  private isStopped = false;

  /** `sendText` receives masked text. The last characters are held back while they may be the beginning of a secret. */
  constructor(
    private readonly stream: CompletionEventReader,
    private readonly scan: Pick<SecretScanner, "maskStartOfStreamedText">,
    private readonly sendText: (text: string) => Promise<void>,
  ) {}

  /**
   * Reads the next bytes of the response.
   * @throws OutgoingError TRANSPORT if the response does not have the expected form
   */
  async push(chunk: Uint8Array): Promise<void> {
    this.hasResponse = true;
    try {
      for (const event of this.events.push(chunk)) await this.readEvent(event);
    } catch (error) {
      throw error instanceof AiError ? new OutgoingError("TRANSPORT", error.message) : error;
    }
  }

  /**
   * Passes on the rest of the text, and returns the whole completion.
   * @throws AiError TRANSPORT if the response ended too early
   */
  async finishCompletion(): Promise<AiCompletion> {
    this.hasResponse = true;
    for (const event of this.events.finish()) await this.readEvent(event);
    await this.addText("", true);
    return this.stream.finish();
  }

  /** Passes on no more text, even if unsent text remains. */
  stop(): void {
    this.isStopped = true;
  }

  private async readEvent(event: unknown): Promise<void> {
    const text = this.stream.push(event);
    if (text !== "") await this.addText(text, false);
  }

  /** Number of characters of text and of tool arguments received so far; null before a successful response. */
  get characters(): number | null {
    return this.hasResponse ? this.stream.characterCount() : null;
  }

  private async addText(addedText: string, isEnd: boolean): Promise<void> {
    this.text += addedText;
    if (!isEnd && this.text.length < this.nextScanLength) return;
    const { masked, to, neededFrom } = await this.scan.maskStartOfStreamedText({
      text: this.text,
      from: this.from,
      isEnd,
    });
    this.text = this.text.slice(neededFrom);
    this.from = to - neededFrom;
    this.nextScanLength = this.text.length > ALWAYS_SCANNED_CHARACTERS ? 2 * this.text.length : 0;
    if (masked !== "" && !this.isStopped) await this.sendText(masked);
  }
}
