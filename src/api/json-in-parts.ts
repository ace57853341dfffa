/**
 * Parses a large JSON object in parts, and yields to other requests in between: arrays at its top level in batches of
 * their elements, everything else value by value. `JSON.parse` of 64 MB at once blocks the main thread for half a
 * second.
 */
import { ActionError } from "../errors.js";

const [QUOTE, BACKSLASH, COMMA, COLON] = [34, 92, 44, 58] as const;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125] as const;
const BLANK_BYTES = [9, 10, 13, 32];

/** Maximum bytes of elements that are parsed without a pause. One element or value cannot be larger. */
const BATCH_BYTES = 128 * 1024;
const VALUE_MAX_BYTES = 2 * 1024 * 1024;

/** @param place position of the byte in the body */
const invalidJson = (place: number) =>
  new ActionError("REQUEST_INVALID", `the body is not valid JSON (at position ${place})`);

const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses the bytes. The parser's message may quote a secret, so the error contains only the position. */
function parsePart(before: string, bytes: Buffer, after: string, place: number): unknown {
  try {
    return JSON.parse(before + utf8Decoder.decode(bytes) + after);
  } catch {
    throw invalidJson(place);
  }
}

class JsonReader {
  private at = 0;

  constructor(private readonly body: Buffer) {}

  private skipBlank(): void {
    while (BLANK_BYTES.includes(this.body[this.at]!)) this.at += 1;
  }

  /** If the next character after spaces is this character, moves past it and returns true. */
  private takes(character: number): boolean {
    this.skipBlank();
    if (this.body[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  private skipString(): void {
    for (this.at += 1; this.at < this.body.length; this.at += 1) {
      const byte = this.body[this.at];
      if (byte === BACKSLASH) this.at += 1;
      else if (byte === QUOTE) break;
    }
    this.at += 1;
  }

  /** Moves past one value to the comma or bracket after it. Recognizes strings and brackets only; `JSON.parse` checks the rest later. */
  private skipValue(): void {
    const started = this.at;
    for (let depth = 0; this.at < this.body.length; ) {
      if (this.at - started > VALUE_MAX_BYTES) {
        throw new ActionError(
          "PAYLOAD_TOO_LARGE",
          `one value of the body is larger than ${VALUE_MAX_BYTES / 2 ** 20} MB`,
        );
      }
      const byte = this.body[this.at];
      if (byte === QUOTE) {
        this.skipString();
        continue;
      }
      if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1;
      else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
      else if (byte === COMMA && depth === 0) return;
      if (depth < 0) return;
      this.at += 1;
    }
    throw invalidJson(this.at);
  }

  /** Returns the next elements, as many as fit into one batch. */
  private batch(): unknown[] {
    const started = this.at;
    let partEnd = started;
    do {
      this.skipValue();
      partEnd = this.at;
    } while (partEnd - started < BATCH_BYTES && this.takes(COMMA));
    return parsePart("[", this.body.subarray(started, partEnd), "]", started) as unknown[];
  }

  /** Yields the elements one by one, and pauses after each parsed batch. */
  *elements(): Generator<undefined, unknown[]> {
    this.at += 1;
    const parts: unknown[] = [];
    if (this.takes(CLOSE_ARRAY)) return parts;
    for (;;) {
      const batch = this.batch();
      // A comma must be followed by a value.
      if (batch.length === 0) throw invalidJson(this.at);
      for (const element of batch) parts.push(element);
      yield;
      if (this.takes(CLOSE_ARRAY)) return parts;
      if (!this.takes(COMMA)) throw invalidJson(this.at);
    }
  }

  private key(): string {
    this.skipBlank();
    const started = this.at;
    if (this.body[started] !== QUOTE) throw invalidJson(started);
    this.skipString();
    const key = parsePart("", this.body.subarray(started, this.at), "", started) as string;
    if (!this.takes(COLON)) throw invalidJson(this.at);
    return key;
  }

  *object(): Generator<undefined, Record<string, unknown>> {
    const members: [string, unknown][] = [];
    if (!this.takes(OPEN_OBJECT)) throw invalidJson(this.at);
    let hasMore = !this.takes(CLOSE_OBJECT);
    while (hasMore) {
      const key = this.key();
      this.skipBlank();
      const started = this.at;
      if (this.body[started] === OPEN_ARRAY) members.push([key, yield* this.elements()]);
      else {
        this.skipValue();
        members.push([key, parsePart("", this.body.subarray(started, this.at), "", started)]);
        yield;
      }
      hasMore = this.takes(COMMA);
      if (!hasMore && !this.takes(CLOSE_OBJECT)) throw invalidJson(this.at);
    }
    this.skipBlank();
    if (this.at < this.body.length) throw invalidJson(this.at);
    return Object.fromEntries(members);
  }
}

/**
 * Returns the object that `JSON.parse` would.
 * @param turn runs one step of the work in its turn
 * @throws REQUEST_INVALID if the body is not a JSON object, PAYLOAD_TOO_LARGE for one value of more than 2 MB
 */
export async function parseInParts(
  body: Buffer,
  turn: <T>(step: () => T) => Promise<T>,
): Promise<Record<string, unknown>> {
  const steps = new JsonReader(body).object();
  for (;;) {
    const { done, value } = await turn(() => steps.next());
    if (done) return value;
  }
}
