/**
 * Finds secret values in text, plain and in the encodings in which they usually travel. Knows names and values, not what a setting is.
 * What it cannot see: a value that was split, encrypted, compressed, or encoded in a way of the author's own.
 */

import { domainToUnicode } from "node:url";

export interface Secret {
  /** What may be said of it. */
  name: string;
  value: string;
}

export interface SecretScan {
  /** The name of a secret that `text` holds, or null. */
  find(text: string): string | null;
  /** The same for JSON text, in which a short value counts where it is the whole of a string. */
  findInJson(json: string): string | null;
  /**
   * The same for an address, however its parts are escaped; in its host, where case is lost, whatever the case. A short value counts
   * where it is the whole value of a parameter.
   */
  findInUrl(url: string): string | null;
  /** `text` with every secret replaced by «name». */
  mask(text: string): string;
}

/** Shorter values would be found by chance; they count only where they are the whole text. */
export const SECRET_MIN_CHARACTERS = 8;

/** Forms are looked up by their first characters; no form is shorter. */
const PREFIX = 4;

const jsonInside = (text: string): string => JSON.stringify(text).slice(1, -1);
const reversed = (text: string): string => Array.from(text).reverse().join("");

/** Base64 of the bytes at each of the three places that they may have in a longer text: the characters that are the same for all such texts. */
function base64Forms(bytes: Buffer, encoding: "base64" | "base64url"): string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString(encoding)
      .replaceAll("=", "");
    const first = Math.ceil((shift * 8) / 6);
    return encoded.slice(first, Math.floor(((shift + bytes.length) * 8) / 6));
  });
}

function urlForms(text: string): string[] {
  const once = encodeURIComponent(text.toWellFormed());
  const form = new URLSearchParams([["", text]]).toString().slice(1);
  const lower = (escaped: string) => escaped.replace(/%[0-9A-F]{2}/g, (match) => match.toLowerCase());
  return [once, encodeURIComponent(once), form, encodeURI(text.toWellFormed())].flatMap((escaped) => [
    escaped,
    lower(escaped),
  ]);
}

/** Every text in which the value would be recognised (contract, section 6). */
function formsOf(value: string): Set<string> {
  const bytes = Buffer.from(value);
  const hex = bytes.toString("hex");
  const percent = hex.replace(/../g, "%$&");
  return new Set([
    value,
    jsonInside(value),
    jsonInside(jsonInside(value)),
    reversed(value),
    ...urlForms(value),
    percent,
    percent.toUpperCase(),
    hex,
    hex.toUpperCase(),
    ...base64Forms(bytes, "base64"),
    ...base64Forms(bytes, "base64url"),
  ]);
}

/** As often as a text may have been escaped before it was put into an address. */
const ESCAPED_TIMES = 3;
const LABELS = /[.-]/g;

/** Undoes escapes where there are any, also broken ones, which decodeURIComponent would refuse. */
const unescaped = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString());

/** The address as it stands and with one after the other of its layers of escapes taken off; in a form's parameters + is a space. */
function* layersOf(url: string): Generator<string> {
  for (const start of url.includes("+") ? [url, url.replaceAll("+", " ")] : [url]) {
    let text = start;
    for (let time = 0; time <= ESCAPED_TIMES; time += 1) {
      yield text;
      const next = unescaped(text);
      if (next === text) break;
      text = next;
    }
  }
}

/** A host's texts in which a secret may be found: as it is, and put together again from its labels, none of which holds more than 63 characters. */
function hostTexts({ hostname }: URL): string[] {
  return [hostname, domainToUnicode(hostname)].flatMap((host) => [
    host,
    host.replaceAll(".", ""),
    host.replace(LABELS, ""),
  ]);
}

interface Form {
  text: string;
  name: string;
}

/** Two characters' codes folded into 16 bits: which pairs open a form at all. One look-up a character keeps a megabyte at some milliseconds. */
const pairAt = (text: string, index: number): number =>
  ((text.charCodeAt(index) << 8) ^ text.charCodeAt(index + 1)) & 0xffff;

function createFinder(forms: readonly Form[]) {
  const opens = new Uint8Array(0x10000);
  const byPrefix = new Map<string, Form[]>();
  // The longest first, so that a mask covers all of a value.
  for (const form of [...forms].sort((a, b) => b.text.length - a.text.length)) {
    opens[pairAt(form.text, 0)] = 1;
    const prefix = form.text.slice(0, PREFIX);
    byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), form]);
  }
  /** The next form at or after `from`, and where. */
  return function next(text: string, from: number): { at: number; form: Form } | null {
    for (let at = from; at + PREFIX <= text.length; at += 1) {
      if (opens[pairAt(text, at)] === 0) continue;
      const form = byPrefix.get(text.slice(at, at + PREFIX))?.find((candidate) => text.startsWith(candidate.text, at));
      if (form) return { at, form };
    }
    return null;
  };
}

export function createSecretScan(secrets: readonly Secret[]): SecretScan {
  const known = secrets.filter(({ value }) => value !== "");
  const short = known.filter(({ value }) => value.length < SECRET_MIN_CHARACTERS);
  const long = known.filter(({ value }) => value.length >= SECRET_MIN_CHARACTERS);
  const forms = long.flatMap(({ name, value }) => Array.from(formsOf(value), (text) => ({ text, name })));
  const next = createFinder(forms);
  // A host is lower case, has no labels' dots here, and no characters but letters, digits and hyphens.
  const nextInHost = createFinder(
    forms.flatMap(({ text, name }) =>
      [text, text.replace(LABELS, "")].map((form) => ({ text: form.toLowerCase(), name })),
    ),
  );

  const whole = (text: string): string | null => short.find(({ value }) => value === text)?.name ?? null;

  function mask(text: string): string {
    const name = whole(text);
    if (name !== null) return `«${name}»`;
    let masked = "";
    let from = 0;
    for (let hit = next(text, 0); hit; hit = next(text, from)) {
      masked += `${text.slice(from, hit.at)}«${hit.form.name}»`;
      from = hit.at + hit.form.text.length;
    }
    return masked + text.slice(from);
  }

  function findInUrl(url: string): string | null {
    for (const text of layersOf(url)) {
      const hit = next(text, 0);
      if (hit) return hit.form.name;
    }
    const parsed = URL.parse(url);
    if (parsed === null) return null;
    for (const text of hostTexts(parsed)) {
      const hit = nextInHost(text, 0);
      if (hit) return hit.form.name;
    }
    return [...parsed.searchParams.values()].map(whole).find((name) => name !== null) ?? null;
  }

  return {
    findInUrl,
    find: (text) => whole(text) ?? next(text, 0)?.form.name ?? null,
    findInJson: (json) =>
      short.find(({ value }) => json.includes(JSON.stringify(value)))?.name ?? next(json, 0)?.form.name ?? null,
    mask,
  };
}
