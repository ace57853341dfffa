/** Describes entries of audit logs in words. An entry has a type, such as `app.settings.update`, and details as JSON. */
import { formatExactTime } from "./format.js";

const MAX_LIST_ITEMS = 10;

/** Words that Studio shows instead of parts of an audit entry's type. "" hides the part. */
const TYPE_PART_WORDS: Readonly<Record<string, string>> = {
  app: "",
  v3: "",
  appAction: "action",
  mediaFile: "file",
  mcp: "MCP",
  git: "Git repository",
  grant: "program",
};

/** Words for the last part of an entry's type, which names the operation. */
const OPERATION_WORDS: Readonly<Record<string, string>> = {
  accept: "accepted",
  accessRules: "access rules changed",
  apply: "applied",
  call: "called",
  cancel: "cancelled",
  connect: "connected",
  create: "created",
  decide: "decided",
  delete: "deleted",
  disconnect: "disconnected",
  entries: "entries changed",
  mark: "marked",
  dependency: "dependency changed",
  origins: "origins changed",
  notUsers: "no longer for sign-ins",
  passphrase: "passphrase changed",
  pause: "paused",
  promote: "promoted",
  publish: "published",
  pull: "pulled",
  remove: "removed",
  reset: "passphrase reset",
  resetLink: "reset link created",
  resetRequested: "reset requested",
  restore: "restored",
  resume: "resumed",
  role: "role changed",
  rollback: "rolled back",
  revoke: "revoked",
  rotateSecret: "secret replaced",
  setup: "set up",
  signIn: "signed in",
  signInFailed: "sign-in failed",
  signOut: "signed out",
  test: "tested",
  unpublish: "unpublished",
  update: "changed",
};

/** Splits a name in camel case into words: `userId` becomes `user ID`. */
const splitWords = (name: string): string =>
  name
    .replace(/[a-z0-9][A-Z]/g, (pair) => `${pair[0]} ${pair[1]!.toLowerCase()}`)
    .replace(/^ids?$| ids?$/, (word) => word.replace("id", "ID"));

/** Describes the type of an entry: `appAction.v3.update` becomes `Action changed`. */
export function describeAuditType(type: string): string {
  const parts = type.split(".");
  const operation = parts.pop()!;
  const words = [
    ...parts.map((part) => TYPE_PART_WORDS[part] ?? splitWords(part)),
    OPERATION_WORDS[operation] ?? splitWords(operation),
  ];
  const subject = words.filter((word) => word !== "");
  const text = (subject.length === 1 ? ["app", ...subject] : subject).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** True if the text is a time in the service's notation: `2026-01-01T00:00:00.000Z`. */
const isIsoTime = (text: string): boolean =>
  text.length === 24 && text.endsWith("Z") && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text;

function formatDetailValue(value: unknown): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return "none";
    const texts = value.slice(0, MAX_LIST_ITEMS).map(formatDetailValue);
    const omittedCount = value.length - texts.length;
    return [...texts, ...(omittedCount > 0 ? [`${omittedCount} more`] : [])].join(", ");
  }
  if (typeof value === "object" && value !== null) return formatDetails(value).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = String(value);
  return isIsoTime(text) ? formatExactTime(text) : text;
}

/** False for null, 0 and "", which Studio leaves out. True for an empty list, because a change may have emptied the list. */
const isDetailShown = (value: unknown): boolean => value !== null && value !== 0 && value !== "";

/** True for a number that only repeats the length of a list in the same details. */
const isListCount = (name: string, value: unknown, data: object): boolean =>
  name === "count" && Object.values(data).some((list) => Array.isArray(list) && list.length === value);

/** One detail of an entry: `{"fileId": 7}` becomes the label `file` and the text `#7`. */
export interface AuditDetail {
  label: string;
  text: string;
}

type GetPersonName = (id: number) => string | null;

function describeDetail(name: string, value: unknown, getPersonName: GetPersonName): AuditDetail {
  const label = splitWords(name.replace(/^is(?=[A-Z])/, "").replace(/^[A-Z]/, (letter) => letter.toLowerCase()));
  if (typeof value !== "number" || !name.endsWith("Id")) return { label, text: formatDetailValue(value) };
  if (name === "userId") return { label: "person", text: getPersonName(value) ?? `#${value}` };
  return { label: label.replace(/ ID$/, ""), text: `#${value}` };
}

const NO_PERSON_NAMES: GetPersonName = () => null;

const listDetails = (data: object, getPersonName: GetPersonName): AuditDetail[] =>
  Object.entries(data)
    .filter(([name, value]) => isDetailShown(value) && !isListCount(name, value, data))
    .map(([name, value]) => describeDetail(name, value, getPersonName));

const formatDetails = (data: object): string[] =>
  listDetails(data, NO_PERSON_NAMES).map(({ label, text }) => `${label} ${text}`);

/** Returns the details of an entry: `{"keys": ["a", "b"]}` becomes the label `keys` and the text `a, b`. */
export const listAuditDetails = (data: unknown, getPersonName: GetPersonName = NO_PERSON_NAMES): AuditDetail[] =>
  typeof data === "object" && data !== null ? listDetails(data, getPersonName) : [];
