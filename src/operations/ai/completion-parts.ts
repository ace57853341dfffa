/** Reads a streamed completion while it arrives, and passes its text on without secrets. Knows no provider and no transport. */
import { OutgoingError } from "../../engine/outgoing.js";
import type { Scan } from "../../engine/secret-scan.js";
import type { Completion, CompletionStream } from "../../rules/ai/answer.js";
import { AiError } from "../../rules/ai/failure.js";
import { EventReader } from "../../rules/ai/provider-json.js";

/** Characters before the text that waits, which an encoded secret may begin in. */
const CONTEXT_CHARACTERS = 256;

export class CompletionParts {
  private readonly events = new EventReader();
  private text = "";
  private from = 0;
  /** Characters of the completion's text so far. */
  characters = 0;

  /** @param passOn receives text that holds no secret and cannot be the beginning of one */
  constructor(
    private readonly stream: CompletionStream,
    private readonly scan: Pick<Scan, "maskBeginning">,
    private readonly passOn: (text: string) => Promise<void>,
  ) {}

  /** Reads a part of the response. @throws OutgoingError TRANSPORT for a response of another form */
  async push(part: Uint8Array): Promise<void> {
    try {
      for (const event of this.events.push(part)) await this.read(event);
    } catch (error) {
      throw error instanceof AiError ? new OutgoingError("TRANSPORT", error.message) : error;
    }
  }

  /** @throws AiError TRANSPORT if the response ended early */
  async end(): Promise<Completion> {
    for (const event of this.events.end()) await this.read(event);
    await this.take("", true);
    return this.stream.end();
  }

  private async read(event: unknown): Promise<void> {
    const text = this.stream.push(event);
    if (text !== "") await this.take(text, false);
  }

  private async take(added: string, isEnd: boolean): Promise<void> {
    this.characters += added.length;
    this.text += added;
    const { masked, to } = await this.scan.maskBeginning({ text: this.text, from: this.from, isEnd });
    const dropped = Math.max(0, to - CONTEXT_CHARACTERS);
    this.text = this.text.slice(dropped);
    this.from = to - dropped;
    if (masked !== "") await this.passOn(masked);
  }
}
