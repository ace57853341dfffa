/** What bytes are, by themselves: never by what somebody calls them. Reads a file's head alone, and runs nothing of it. */
import { fileTypeFromBuffer } from "file-type";

const HTML =
  /^(?:<!--[\s\S]*?-->|<\?xml[^>]*\?>|\s)*<(?:!doctype html|html|head|body|script|iframe|style|title|h1|div|font|table|a|b|br|p|img|object|embed|meta|link|form|svg:|base)(?:[\s/>]|$)/i;
const SVG = /^(?:<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!doctype svg[^>]*>|\s)*<(?:\w+:)?svg[\s>]/i;
const XML = /^\s*<\?xml\s/i;
/** Characters that no text has: of these a binary file has some within its first bytes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const BINARY = /[\x00-\x08\x0e-\x1a\x1c-\x1f]/;

/** The head as text; null where it is none. A character may be cut at its end. */
function textOf(head: Buffer): string | null {
  const bom = head.toString("latin1", 0, 2);
  if (bom === "\xff\xfe" || bom === "\xfe\xff")
    return new TextDecoder(bom === "\xff\xfe" ? "utf-16le" : "utf-16be").decode(head);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
    return BINARY.test(text) ? null : text;
  } catch {
    return null;
  }
}

function typeOfText(text: string): string {
  if (SVG.test(text)) return "image/svg+xml";
  if (HTML.test(text)) return "text/html";
  return XML.test(text) ? "application/xml" : "text/plain";
}

/** What says more of itself only beyond the head: a TIFF's directory, a song behind the picture of its cover. */
const BEYOND: readonly (readonly [start: string, type: string])[] = [
  ["II*\0", "image/tiff"],
  ["MM\0*", "image/tiff"],
  ["ID3", "audio/mpeg"],
];

function typeByStart(head: Buffer): string | undefined {
  const start = head.toString("latin1", 0, 4);
  return BEYOND.find(([known]) => start.startsWith(known))?.[1];
}

/** A media type in lower case, without parameters; `application/octet-stream` for what is unknown. */
export async function contentTypeOf(head: Buffer): Promise<string> {
  const text = textOf(head);
  const found = await fileTypeFromBuffer(head).catch(() => undefined);
  // What is markup is taken for that whatever else it may pass for.
  if (text !== null && (found === undefined || /xml|html/.test(found.mime))) return typeOfText(text);
  return found?.mime ?? typeByStart(head) ?? "application/octet-stream";
}
