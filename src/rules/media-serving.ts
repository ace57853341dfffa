/** How contents are sent: under which type, shown or saved, which part of them. Pure; knows no transport. */

/** What a browser shows without running anything of it. All else is saved. */
const SHOWN = new Set([
  ...["image/jpeg", "image/png", "image/apng", "image/gif", "image/webp", "image/avif"],
  ...["audio/mpeg", "audio/mp4", "audio/x-m4a", "audio/wav", "audio/ogg", "audio/opus", "audio/flac", "audio/aac"],
  ...["video/mp4", "video/webm", "video/ogg", "video/quicktime", "text/plain"],
]);

/** Types that a browser would make a page or a script of; sent as bytes. */
const ACTIVE =
  /^(?:text\/(?!plain$)|application\/(?:xhtml|(?:pdf|x-shockwave-flash|wasm|x-mimearchive)$)|image\/svg|multipart\/|message\/)/;
const ACTIVE_ENDS = ["xml", "json", "javascript"];

const isActive = (contentType: string): boolean =>
  ACTIVE.test(contentType) ||
  (contentType.startsWith("application/") && ACTIVE_ENDS.some((end) => contentType.endsWith(end)));

/** An SVG keeps its type, for `<img>` takes no other; as a document it is saved, and has no scripts. */
const SVG = "image/svg+xml";

export interface Serving {
  contentType: string;
  /** `inline` or `attachment`. */
  disposition: "inline" | "attachment";
}

/** @param isReadable false for a picture that could not be decoded: a browser may treat it in any way */
export function servingOf(contentType: string, isReadable: boolean): Serving {
  const isShown = SHOWN.has(contentType) && (isReadable || !contentType.startsWith("image/"));
  if (contentType === "text/plain") return { contentType: "text/plain; charset=utf-8", disposition: "inline" };
  const sent = contentType !== SVG && isActive(contentType) ? "application/octet-stream" : contentType;
  return { contentType: sent, disposition: isShown ? "inline" : "attachment" };
}

/** RFC 6266: the name in ASCII for old readers, and whole. */
export function contentDisposition(disposition: Serving["disposition"], name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const whole = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `${disposition}; filename="${plain}"; filename*=UTF-8''${whole}`;
}

/** Whether a list of tags in If-None-Match or If-Range names this one (RFC 9110: weakly for the former). */
export function namesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((one) => one.trim() === "*" || one.trim().replace(/^W\//, "") === tag);
}

/** One part of so many bytes; null for all of them; "none" where it lies behind the end (RFC 9110, section 14). Several parts are not served: all comes. */
export function rangeIn(header: string | undefined, bytes: number): { start: number; end: number } | "none" | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (!match) return null;
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return null;
  if (first === "")
    return Number(last) === 0 || bytes === 0 ? "none" : { start: Math.max(0, bytes - Number(last)), end: bytes - 1 };
  const start = Number(first);
  const end = last === "" ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (last !== "" && Number(last) < start) return null;
  return start >= bytes ? "none" : { start, end };
}
