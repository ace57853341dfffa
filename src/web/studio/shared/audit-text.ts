/** Describes entries of audit logs in words: their type, such as `app.settings.update`, and their details, which are JSON. */
import { formatExactTime } from "./format.js";

const LIST_ITEMS_MAX = 10;

/** Parts of types that are no words of the product, or that need other words. */
const PART_WORDS: Readonly<Record<string, string>> = {
  app: "",
  v3: "",
  appAction: "action",
  mediaFile: "file",
  mcp: "MCP",
  git: "Git repository",
  grant: "program",
};

/** Last parts of types, which say what was done. */
const DONE_WORDS: Readonly<Record<string, string>> = {
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

/** Returns the words of a name in camel case: `userId` becomes `user ID`. */
const splitWords = (name: string): string =>
  name
    .replace(/[a-z0-9][A-Z]/g, (pair) => `${pair[0]} ${pair[1]!.toLowerCase()}`)
    .replace(/^ids?$| ids?$/, (word) => word.replace("id", "ID"));

/** Returns the type of an entry in words: `appAction.v3.update` becomes `Action changed`. */
export function describeAuditType(type: string): string {
  const parts = type.split(".");
  const last = parts.pop()!;
  const words = [...parts.map((part) => PART_WORDS[part] ?? splitWords(part)), DONE_WORDS[last] ?? splitWords(last)];
  const subject = words.filter((word) => word !== "");
  const text = (subject.length === 1 ? ["app", ...subject] : subject).join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** True for a time as the service writes it: `2026-01-01T00:00:00.000Z`. */
const isTime = (text: string): boolean =>
  text.length === 24 && text.endsWith("Z") && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text;

function valueText(value: unknown): string {
  if (Array.isArray(value)) {
    if (value.length === 0) return "none";
    const texts = value.slice(0, LIST_ITEMS_MAX).map(valueText);
    const left = value.length - texts.length;
    return [...texts, ...(left > 0 ? [`${left} more`] : [])].join(", ");
  }
  if (typeof value === "object" && value !== null) return detailTexts(value).join(", ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = String(value);
  return isTime(text) ? formatExactTime(text) : text;
}

/** Empty texts and zero counts say nothing. An empty list is shown, because a change may have emptied it. */
const isShown = (value: unknown): boolean => value !== null && value !== 0 && value !== "";

const detailTexts = (data: object): string[] =>
  Object.entries(data)
    .filter(([, value]) => isShown(value))
    .map(([name, value]) => `${splitWords(name)} ${valueText(value)}`);

/** Returns the details of an entry in words: `{"keys": ["a", "b"]}` becomes `keys a, b`. */
export const describeAuditData = (data: unknown): string =>
  typeof data === "object" && data !== null ? detailTexts(data).join(" · ") : "";
