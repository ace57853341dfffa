/**
 * Parses a large JSON object in steps, and handles other requests between the steps. A step parses one value of the object, or one batch of
 * elements of an array. `JSON.parse` of 64 MB at once would block the main thread for half a second.
 */
import { ActionError } from "../errors.js";
import { containsInfinity, mayContainInfinity } from "../rules/describe-value.js";

const [QUOTE, BACKSLASH, COMMA, COLON] = [34, 92, 44, 58] as const;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125] as const;
const WHITESPACE_BYTES = [9, 10, 13, 32];

/**
 * Number of bytes after which a step stops parsing elements of an array. The step's last element can exceed it, because an element may have
 * up to VALUE_MAX_BYTES.
 */
const BATCH_BYTES = 128 * 1024;
const VALUE_MAX_BYTES = 2 * 1024 * 1024;

export const INFINITE_NUMBER_MESSAGE = "the body must not contain a number above 1.8e308 or below -1.8e308";

const createInvalidJsonError = (byteIndex: number) =>
  new ActionError("REQUEST_INVALID", `the body is not a valid JSON object (at byte ${byteIndex} or later)`);

const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses the text `before` + `bytes` + `after`. Its error contains only a byte index, because the parser's message may quote a secret. */
function parseJsonPart(before: string, bytes: Buffer, after: string, firstByteIndex: number): unknown {
  let json: string;
  let value: unknown;
  try {
    json = before + utf8Decoder.decode(bytes) + after;
    value = JSON.parse(json);
  } catch {
    throw createInvalidJsonError(firstByteIndex);
  }
  if (mayContainInfinity(json) && containsInfinity(value))
    throw new ActionError("REQUEST_INVALID", INFINITE_NUMBER_MESSAGE);
  return value;
}

class JsonReader {
  private position = 0;

  constructor(private readonly body: Buffer) {}

  private skipBlank(): void {
    while (WHITESPACE_BYTES.includes(this.body[this.position]!)) this.position += 1;
  }

  /** Skips blanks. If the next character is `character`, moves past it and returns true. */
  private skipIfNext(character: number): boolean {
    this.skipBlank();
    if (this.body[this.position] !== character) return false;
    this.position += 1;
    return true;
  }

  private skipString(): void {
    for (this.position += 1; this.position < this.body.length; this.position += 1) {
      const byte = this.body[this.position];
      if (byte === BACKSLASH) this.position += 1;
      else if (byte === QUOTE) break;
    }
    this.position += 1;
  }

  /** Moves past one value, to the comma or bracket after it. Recognizes only strings and brackets; `JSON.parse` checks the rest later. */
  private skipValue(): void {
    const startIndex = this.position;
    for (let depth = 0; this.position < this.body.length; ) {
      if (this.position - startIndex > VALUE_MAX_BYTES) {
        throw new ActionError(
          "PAYLOAD_TOO_LARGE",
          `a value in the body must have at most ${VALUE_MAX_BYTES / 2 ** 20} MB; only a field with an array can be larger, if each element is within this limit`,
        );
      }
      const byte = this.body[this.position];
      if (byte === QUOTE) {
        this.skipString();
        continue;
      }
      if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1;
      else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
      else if (byte === COMMA && depth === 0) return;
      if (depth < 0) return;
      this.position += 1;
    }
    throw createInvalidJsonError(this.position);
  }

  private parseBatch(): unknown[] {
    const startIndex = this.position;
    let partEnd = startIndex;
    do {
      this.skipValue();
      partEnd = this.position;
    } while (partEnd - startIndex < BATCH_BYTES && this.skipIfNext(COMMA));
    return parseJsonPart("[", this.body.subarray(startIndex, partEnd), "]", startIndex) as unknown[];
  }

  *parseElements(): Generator<undefined, unknown[]> {
    this.position += 1;
    const parts: unknown[] = [];
    if (this.skipIfNext(CLOSE_ARRAY)) return parts;
    for (;;) {
      const batch = this.parseBatch();
      // An empty batch means that there is no element before or after a comma, so the JSON is invalid.
      if (batch.length === 0) throw createInvalidJsonError(this.position);
      for (const element of batch) parts.push(element);
      yield;
      if (this.skipIfNext(CLOSE_ARRAY)) return parts;
      if (!this.skipIfNext(COMMA)) throw createInvalidJsonError(this.position);
    }
  }

  private readKey(): string {
    this.skipBlank();
    const startIndex = this.position;
    if (this.body[startIndex] !== QUOTE) throw createInvalidJsonError(startIndex);
    this.skipString();
    const key = parseJsonPart("", this.body.subarray(startIndex, this.position), "", startIndex) as string;
    if (!this.skipIfNext(COLON)) throw createInvalidJsonError(this.position);
    return key;
  }

  *parseObject(): Generator<undefined, Record<string, unknown>> {
    const members: [string, unknown][] = [];
    if (!this.skipIfNext(OPEN_OBJECT)) throw createInvalidJsonError(this.position);
    let hasMore = !this.skipIfNext(CLOSE_OBJECT);
    while (hasMore) {
      const key = this.readKey();
      this.skipBlank();
      const startIndex = this.position;
      if (this.body[startIndex] === OPEN_ARRAY) members.push([key, yield* this.parseElements()]);
      else {
        this.skipValue();
        members.push([key, parseJsonPart("", this.body.subarray(startIndex, this.position), "", startIndex)]);
        yield;
      }
      hasMore = this.skipIfNext(COMMA);
      if (!hasMore && !this.skipIfNext(CLOSE_OBJECT)) throw createInvalidJsonError(this.position);
    }
    this.skipBlank();
    if (this.position < this.body.length) throw createInvalidJsonError(this.position);
    return Object.fromEntries(members);
  }
}

/**
 * Parses a JSON object. The result equals that of `JSON.parse`.
 * @param runStep runs one step of the parsing when it is the sender's turn
 * @throws REQUEST_INVALID if the body is not a JSON object, PAYLOAD_TOO_LARGE if one value is larger than 2 MB
 */
export async function parseJsonInSteps(
  body: Buffer,
  runStep: <T>(step: () => T) => Promise<T>,
): Promise<Record<string, unknown>> {
  const steps = new JsonReader(body).parseObject();
  for (;;) {
    const { done, value } = await runStep(() => steps.next());
    if (done) return value;
  }
}
