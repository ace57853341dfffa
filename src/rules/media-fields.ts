/** Validates the names of folders and files, and the options of requests that read a file. */
import { isObject, unstorableCharacterIndex } from "./described.js";
import { optionalId, refuseField } from "./fields.js";
import { flatShape, refuseUnknownFields } from "./unknown-fields.js";

export const MEDIA_NAME_MAX_CHARACTERS = 255;
export const PICTURE_MAX_WIDTH = 8_192;
const LINK_DEFAULT_SECONDS = 3_600;
export const LINK_MAX_SECONDS = 7 * 86_400;

/** Matches path separators, invisible characters, and characters that change the direction of writing, as in `photo‮gpj.exe`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const UNFIT_CHARACTERS = /[/\\\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/** @throws REQUEST_INVALID */
export function parseMediaName(value: unknown, field = "name"): string {
  const text = typeof value === "string" ? value.trim().normalize("NFC") : "";
  const isValid =
    text !== "" &&
    text.length <= MEDIA_NAME_MAX_CHARACTERS &&
    unstorableCharacterIndex(text) < 0 &&
    !UNFIT_CHARACTERS.test(text);
  if (isValid && text !== "." && text !== "..") return text;
  const expected = `a name of 1 to ${MEDIA_NAME_MAX_CHARACTERS} characters without slashes and control characters`;
  refuseField(field, expected, value);
}

/** Maximum length of an extension. A longer one counts as part of the name. */
const EXTENSION_MAX_CHARACTERS = 32;

/** Shortens a name to the maximum length: removes the end of the part before the extension. */
function shortenName(name: string): string {
  if (name.length <= MEDIA_NAME_MAX_CHARACTERS) return name;
  const dot = name.lastIndexOf(".");
  const extension = dot > 0 && name.length - dot <= EXTENSION_MAX_CHARACTERS ? name.slice(dot) : "";
  const stem = name.slice(0, MEDIA_NAME_MAX_CHARACTERS - extension.length);
  // The cut may leave half of a surrogate pair.
  return (stem.isWellFormed() ? stem : stem.slice(0, -1)) + extension;
}

/** Converts the file name that a browser sends to a valid name: the last part of a path, without invalid characters. */
export function uploadName(input: string | undefined): string {
  const last = (input ?? "").toWellFormed().split(/[/\\]/).at(-1)!;
  const allowedName = Array.from(last, (character) => (UNFIT_CHARACTERS.test(character) ? "" : character))
    .join("")
    .trim()
    .normalize("NFC");
  const shortName = shortenName(allowedName);
  return shortName === "" || shortName === "." || shortName === ".." ? "file" : shortName;
}

/** Parses a folder's ID: a number, or a text as forms send it. null means the top level. @throws REQUEST_INVALID */
export function folderIdIn(value: unknown, field = "folderId"): number | null {
  if (value === "" || value === "null") return null;
  return optionalId(typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value, field);
}

export const FOLDER_SHAPE = flatShape(["name", "parentId"], ["id", "userId", "createdAt", "updatedAt"]);
const FILE_SHAPE = flatShape(
  ["name", "folderId"],
  ["id", "contentType", "url", "thumbnail", "size", "bytes", "checksum", "userId", "createdAt", "updatedAt"],
);

/** Parses the fields of a change to a folder or file. @throws REQUEST_INVALID */
export function parseMediaChange(
  body: unknown,
  parent: "folderId" | "parentId",
): { name?: string; folderId?: number | null } {
  if (!isObject(body)) refuseField("the body", "an object", body);
  const { name } = body;
  const change = {
    ...(name !== undefined && { name: parseMediaName(name) }),
    ...(body[parent] !== undefined && { folderId: folderIdIn(body[parent], parent) }),
  };
  refuseUnknownFields(body, parent === "parentId" ? FOLDER_SHAPE : FILE_SHAPE);
  return change;
}

function wholeNumber(value: unknown, field: string, min: number, max: number): number {
  const number = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(number) && (number as number) >= min && (number as number) <= max) return number as number;
  refuseField(field, `a whole number from ${min} to ${max}`, value);
}

/** Parses `expiresIn`: the seconds for which a link is valid. @throws ActionError REQUEST_INVALID */
export const parseLinkSeconds = (value: unknown): number =>
  value === undefined || value === null ? LINK_DEFAULT_SECONDS : wholeNumber(value, "expiresIn", 1, LINK_MAX_SECONDS);

const PICTURE_FORMATS = ["jpeg", "png", "webp", "avif"] as const;
export type ContentsFormat = (typeof PICTURE_FORMATS)[number];

/** Form in which a file's content is returned: as stored, as a thumbnail, or as a picture of another size or format. */
export type ContentsForm =
  | { kind: "whole" }
  | { kind: "thumbnail" }
  | { kind: "resized"; width: number | null; format: ContentsFormat | null; quality: number };

const QUALITY_DEFAULT = 80;

/** @throws REQUEST_INVALID */
export function parseContentsForm(input: {
  size?: unknown;
  width?: unknown;
  format?: unknown;
  quality?: unknown;
}): ContentsForm {
  const { size, format, quality } = input;
  if (size === "thumbnail") return { kind: "thumbnail" };
  const width = input.width ?? size;
  if (width === undefined && format === undefined && quality === undefined) return { kind: "whole" };
  const knownFormats: readonly unknown[] = PICTURE_FORMATS;
  const formatName = format === "jpg" ? "jpeg" : format;
  if (formatName !== undefined && !knownFormats.includes(formatName)) {
    refuseField("format", `one of ${PICTURE_FORMATS.join(", ")}`, format);
  }
  return {
    kind: "resized",
    width: width === undefined ? null : wholeNumber(width, "width", 1, PICTURE_MAX_WIDTH),
    format: (formatName as ContentsFormat | undefined) ?? null,
    quality: quality === undefined ? QUALITY_DEFAULT : wholeNumber(quality, "quality", 1, 100),
  };
}
