/** Shortens a route's real response for the reference, and replaces times, tokens and ports, so that two recordings are equal. */

const SHOWN_FIELDS_MAX = 8;
const SHOWN_DEPTH_MAX = 3;
const DAY_MS = 86_400_000;
/** Time that the reference shows in place of every time in a recorded response, except the start of a range. */
export const SAMPLE_TIME = "2026-11-21T12:00:00.000Z";
const SHOWN_CHARACTERS_MAX = 160;

export interface RecordedResponse {
  address: string;
  http: number;
  body: unknown;
}

function shortenText(text: string): string {
  const normalizedText = text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, SAMPLE_TIME)
    .replaceAll(/\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)[+-]\d\d:\d\d/g, `${SAMPLE_TIME.slice(0, 10)}T$1+01:00`)
    .replaceAll(/http:\/\/(127\.0\.0\.1|localhost):\d+/g, "http://$1:4000")
    .replaceAll(/\bsvc_([a-z]+)_[\w-]{12,}/g, "svc_$1_…")
    .replaceAll(/[\w+/=-]{32,}/g, "…");
  return normalizedText.length > SHOWN_CHARACTERS_MAX
    ? `${normalizedText.slice(0, SHOWN_CHARACTERS_MAX)}…`
    : normalizedText;
}

/** Moves a time range so that it ends at SAMPLE_TIME and still has the same number of days. Returns {} if `from` and `to` are not times. */
function replaceRangeTimes({ from, to }: { from?: unknown; to?: unknown }): { from?: string; to?: string } {
  const days = Math.round((Date.parse(String(to)) - Date.parse(String(from))) / DAY_MS);
  if (!Number.isFinite(days)) return {};
  return { from: new Date(Date.parse(SAMPLE_TIME) - days * DAY_MS).toISOString(), to: SAMPLE_TIME };
}

/** Returns the part of a response that the reference shows. `…` replaces further fields, items or characters. */
export function shortenResponse(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return shortenText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const [first, ...others] = value;
    return typeof first === "object"
      ? [shortenResponse(first, depth + 1), ...(others.length > 0 ? ["…"] : [])]
      : value.slice(0, SHOWN_FIELDS_MAX).map((item) => shortenResponse(item, depth));
  }
  const fields = Object.entries(value);
  if (fields.length > 0 && depth > SHOWN_DEPTH_MAX) return { "…": "…" };
  const shownFields = fields
    .slice(0, SHOWN_FIELDS_MAX)
    .map(([name, field]) => [name, shortenResponse(field, depth + 1)] as const);
  return {
    ...Object.fromEntries(fields.length > SHOWN_FIELDS_MAX ? [...shownFields, ["…", "…"]] : shownFields),
    ...replaceRangeTimes(value),
  };
}
