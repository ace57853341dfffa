/** Reads a streamed completion of a language model, and passes on its text with secrets masked while it arrives. */
import { OutgoingError } from "../../engine/outgoing.js";
import type { Scan } from "../../engine/secret-scan.js";
import type { AiCompletion, CompletionEventReader } from "../../rules/ai/answer.js";
import { AiError } from "../../rules/ai/failure.js";
import { EventReader } from "../../rules/ai/provider-json.js";

/**
 * Length above which waiting text is scanned again only when it has doubled, so that the total time of all scans stays
 * linear.
 */
const SCANNED_AT_ONCE_CHARACTERS = 1_024;

export class CompletionParts {
  private readonly events = new EventReader();
  private text = "";
  private from = 0;
  /** Length that the waiting text must reach before the next scan. */
  private scannedFrom = 0;
  private hasStarted = false;
  private isStopped = false;

  /** @param passOn receives text with secrets masked. Text that may be the beginning of a secret is held back. */
  constructor(
    private readonly stream: CompletionEventReader,
    private readonly scan: Pick<Scan, "maskBeginning">,
    private readonly passOn: (text: string) => Promise<void>,
  ) {}

  /** Reads a part of the response. @throws OutgoingError TRANSPORT for a response of another form */
  async push(chunk: Uint8Array): Promise<void> {
    this.hasStarted = true;
    try {
      for (const event of this.events.push(chunk)) await this.read(event);
    } catch (error) {
      throw error instanceof AiError ? new OutgoingError("TRANSPORT", error.message) : error;
    }
  }

  /** @throws AiError TRANSPORT if the response ended early */
  async finishCompletion(): Promise<AiCompletion> {
    this.hasStarted = true;
    for (const event of this.events.end()) await this.read(event);
    await this.addText("", true);
    return this.stream.end();
  }

  /** Stops passing text on, even if a received part is still waiting. */
  stop(): void {
    this.isStopped = true;
  }

  private async read(event: unknown): Promise<void> {
    const text = this.stream.push(event);
    if (text !== "") await this.addText(text, false);
  }

  /**
   * Characters that the provider has sent as text and as arguments of tools; null if the provider has sent no
   * successful response.
   */
  get characters(): number | null {
    return this.hasStarted ? this.stream.characters() : null;
  }

  private async addText(added: string, isEnd: boolean): Promise<void> {
    this.text += added;
    if (!isEnd && this.text.length < this.scannedFrom) return;
    const { masked, to, neededFrom } = await this.scan.maskBeginning({ text: this.text, from: this.from, isEnd });
    this.text = this.text.slice(neededFrom);
    this.from = to - neededFrom;
    this.scannedFrom = this.text.length > SCANNED_AT_ONCE_CHARACTERS ? 2 * this.text.length : 0;
    if (masked !== "" && !this.isStopped) await this.passOn(masked);
  }
}
