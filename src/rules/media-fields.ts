/** Validates the names of folders and files, and the options of requests that read a file. */
import { findUnstorableCharacter, isObject } from "./describe-value.js";
import { parseOptionalId, refuseField } from "./fields.js";
import { createFlatShape, refuseUnknownFields } from "./unknown-fields.js";

export const MEDIA_NAME_MAX_CHARACTERS = 255;
export const PICTURE_WIDTH_MAX_PX = 8_192;
const LINK_DEFAULT_SECONDS = 3_600;
export const MEDIA_LINK_LIFETIME_MAX_SECONDS = 7 * 86_400;

/** Matches characters that names cannot contain: slashes, invisible characters, and characters that reverse the direction of writing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters to reject them
const INVALID_NAME_CHARACTERS = /[/\\\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/** Parses the name of a folder or file. @throws REQUEST_INVALID */
export function parseMediaName(value: unknown, field = "name"): string {
  const text = typeof value === "string" ? value.trim().normalize("NFC") : "";
  const isValid =
    text !== "" &&
    text.length <= MEDIA_NAME_MAX_CHARACTERS &&
    findUnstorableCharacter(text) < 0 &&
    !INVALID_NAME_CHARACTERS.test(text);
  if (isValid && text !== "." && text !== "..") return text;
  const expected = `a name of 1 to ${MEDIA_NAME_MAX_CHARACTERS} characters without slashes and control characters`;
  refuseField(field, expected, value);
}

/** Maximum length of a file name's extension in characters, with its dot. A longer ending counts as part of the name. */
const EXTENSION_MAX_CHARACTERS = 32;

function shortenName(name: string): string {
  if (name.length <= MEDIA_NAME_MAX_CHARACTERS) return name;
  const dotIndex = name.lastIndexOf(".");
  const extension = dotIndex > 0 && name.length - dotIndex <= EXTENSION_MAX_CHARACTERS ? name.slice(dotIndex) : "";
  const stem = name.slice(0, MEDIA_NAME_MAX_CHARACTERS - extension.length);
  // The cut may have left half of a surrogate pair at the end, which is removed.
  return (stem.isWellFormed() ? stem : stem.slice(0, -1)) + extension;
}

/** Converts the file name that a browser sends with an upload to a valid name: removes folders and invalid characters. */
export function toValidUploadName(input: string | undefined): string {
  const last = (input ?? "").toWellFormed().split(/[/\\]/).at(-1)!;
  const allowedName = Array.from(last, (character) => (INVALID_NAME_CHARACTERS.test(character) ? "" : character))
    .join("")
    .trim()
    .normalize("NFC");
  const shortName = shortenName(allowedName);
  return shortName === "" || shortName === "." || shortName === ".." ? "file" : shortName;
}

/**
 * Parses the ID of a folder: a number, or a text of digits, which forms send. Returns null for the top level, outside of all folders.
 * @throws REQUEST_INVALID
 */
export function parseMediaFolderId(value: unknown, field = "folderId"): number | null {
  if (value === "" || value === "null") return null;
  return parseOptionalId(typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value, field);
}

export const MEDIA_FOLDER_SHAPE = createFlatShape(["name", "parentId"], ["id", "userId", "createdAt", "updatedAt"]);
const FILE_SHAPE = createFlatShape(
  ["name", "folderId"],
  ["id", "contentType", "url", "thumbnail", "size", "bytes", "checksum", "userId", "createdAt", "updatedAt"],
);

/** Parses a change of a folder or file. Omitted fields keep their values. @throws REQUEST_INVALID */
export function parseMediaChange(
  body: unknown,
  parent: "folderId" | "parentId",
): { name?: string; folderId?: number | null } {
  if (!isObject(body)) refuseField("the body", "an object", body);
  const { name } = body;
  const change = {
    ...(name !== undefined && { name: parseMediaName(name) }),
    ...(body[parent] !== undefined && { folderId: parseMediaFolderId(body[parent], parent) }),
  };
  refuseUnknownFields(body, parent === "parentId" ? MEDIA_FOLDER_SHAPE : FILE_SHAPE);
  return change;
}

function requireWholeNumber(value: unknown, field: string, min: number, max: number): number {
  const number = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : value;
  if (Number.isSafeInteger(number) && (number as number) >= min && (number as number) <= max) return number as number;
  refuseField(field, `a whole number from ${min} to ${max}`, value);
}

/** Parses `expiresIn`, the number of seconds for which a link is valid. @throws ActionError REQUEST_INVALID */
export const parseMediaLinkLifetimeSeconds = (value: unknown): number =>
  value === undefined || value === null
    ? LINK_DEFAULT_SECONDS
    : requireWholeNumber(value, "expiresIn", 1, MEDIA_LINK_LIFETIME_MAX_SECONDS);

const PICTURE_FORMATS = ["jpeg", "png", "webp", "avif"] as const;
export type MediaPictureFormat = (typeof PICTURE_FORMATS)[number];

export type MediaFileVariant =
  | { kind: "whole" }
  | { kind: "thumbnail" }
  | { kind: "resized"; width: number | null; format: MediaPictureFormat | null; quality: number };

const QUALITY_DEFAULT = 80;

/** Parses which variant of a file a request reads: the whole file, its thumbnail, or the resized picture. @throws REQUEST_INVALID */
export function parseMediaFileVariant(input: {
  size?: unknown;
  width?: unknown;
  format?: unknown;
  quality?: unknown;
}): MediaFileVariant {
  const { size, format, quality } = input;
  if (size === "thumbnail") return { kind: "thumbnail" };
  const width = input.width ?? size;
  const widthField = (input.width ?? null) === null ? "size" : "width";
  if (width === undefined && format === undefined && quality === undefined) return { kind: "whole" };
  const knownFormats: readonly unknown[] = PICTURE_FORMATS;
  const formatName = format === "jpg" ? "jpeg" : format;
  if (formatName !== undefined && !knownFormats.includes(formatName)) {
    refuseField("format", `one of ${PICTURE_FORMATS.join(", ")}`, format);
  }
  return {
    kind: "resized",
    width: width === undefined ? null : requireWholeNumber(width, widthField, 1, PICTURE_WIDTH_MAX_PX),
    format: (formatName as MediaPictureFormat | undefined) ?? null,
    quality: quality === undefined ? QUALITY_DEFAULT : requireWholeNumber(quality, "quality", 1, 100),
  };
}
