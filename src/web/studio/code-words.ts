/**
 * What may follow a dot in an action's code: the settings and the payload of `context`, and `Svc` with the packages that are listed.
 * Reads types as text and payloads as values; knows no editor and asks nobody.
 */

/** One name, what it is, and what follows it. */
export interface Word {
  /** As an editor shows it beside the name: a type, or a signature. */
  detail: string;
  about: string | null;
  members: Words;
}

export type Words = Map<string, Word>;

/** A package and the name that it has under `Svc`. */
export interface Package {
  name: string;
  namespace: string;
}

const LEVELS_MAX = 5;
const KEYS_MAX = 60;

const word = (detail: string, members: Words = new Map(), about: string | null = null): Word => ({
  detail,
  about,
  members,
});

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The keys that were seen in any of the values, each with the types that it had. */
export function shapeOf(values: readonly unknown[], levels = LEVELS_MAX): Words {
  const byKey = new Map<string, unknown[]>();
  for (const value of values) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) continue;
    for (const [key, inner] of Object.entries(value)) {
      if (byKey.size < KEYS_MAX || byKey.has(key)) byKey.set(key, [...(byKey.get(key) ?? []), inner]);
    }
  }
  return new Map(
    [...byKey].map(([key, seen]) => {
      const types = [...new Set(seen.map(typeOf))].join(" | ");
      return [key, word(types, levels > 1 ? shapeOf(seen, levels - 1) : new Map())];
    }),
  );
}

/** The body of an interface by its name, null where there is none. */
function bodyOf(types: string, name: string): string | null {
  const start = new RegExp(`^(?:export )?interface ${name}\\b[^{\\n]*\\{\\n`, "m").exec(types);
  if (!start) return null;
  const from = start.index + start[0].length;
  const end = types.indexOf("\n}", from);
  return end < 0 ? null : types.slice(from, end + 1);
}

/** At two spaces of indentation: a comment perhaps, a name, and all up to the semicolon before the next of them. */
const MEMBER = /^ {2}(?:\/\*\*(.*?)\*\/\n {2})?(?:readonly )?([A-Za-z_$][\w$]*)\??(.*?);(?=\n {2}(?:\w|\/\*\*))/gms;
/** What stands after the last member. */
const END = "  end";

const oneLine = (text: string) => text.replace(/\s*\n\s*\*?\s*/g, " ").trim();

/** The members of an interface of the declarations, each with its signature; of objects within it, theirs too. */
export function membersOf(types: string, name: string, levels = 3): Words {
  const members: Words = new Map();
  for (const [, about, member, rest] of `${bodyOf(types, name) ?? ""}${END}`.matchAll(MEMBER)) {
    const detail = oneLine(rest!);
    const [, inner] = /^: ([A-Z]\w*)$/.exec(detail) ?? [];
    const own = inner && levels > 1 ? membersOf(types, inner, levels - 1) : new Map();
    members.set(member!, word(detail.replace(/^: /, ""), own, about ? oneLine(about) : null));
  }
  return members;
}

interface Known {
  /** svc.d.ts. */
  types: string;
  packages: readonly Package[];
  dependencies: readonly string[];
  /** Keys of the app's settings. */
  settings: readonly string[];
  environment: string;
  /** Payloads of past runs. */
  payloads: readonly unknown[];
}

/** The names that code begins with, and what follows each. */
export function codeWords({ types, packages, dependencies, settings, environment, payloads }: Known): Words {
  const readable = environment === "server" ? settings.filter((key) => key.startsWith("_")) : [];
  const ofSettings: Words = new Map(readable.map((key) => [key, word(key.startsWith("__") ? "protected" : "private")]));
  const none = environment === "server" ? null : "Empty, unless the environment is server.";
  const context: Words = new Map([
    ["payload", word("object", shapeOf(payloads), payloads.length > 0 ? "As past runs had it." : null)],
    ["settings", word("object", ofSettings, none)],
  ]);
  const client = membersOf(types, "Client");
  const namespaces = packages
    .filter(({ name }) => dependencies.includes(name))
    .map(({ name, namespace }) => [namespace, word(name, membersOf(types, namespace))] as const);
  const actions = word("Actions", membersOf(types, "Actions"));
  const app: Words = new Map([
    ["V3", word("object", new Map([["Actions", actions]]))],
    ["Analytics", word("Analytics", membersOf(types, "Analytics"))],
    ["Triggers", word("Triggers", membersOf(types, "Triggers"))],
  ]);
  const svc: Words = new Map([...client, ["App", word("object", app)], ...namespaces]);
  return new Map([
    ["context", word("object", context)],
    ["Svc", word("object", svc)],
  ]);
}

const CHAIN = /([A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)*)\??\.\s*$/;
const PARAMETER = /\bexecute\s*(?:=\s*async\s*(?:function\b[^(]*)?)?\(\s*(?:([A-Za-z_$][\w$]*)|\{([^}]*)\})/;

/** What the parameter of `execute` is called, or which of its parts it takes out. */
function parameterOf(code: string): { name: string | null; parts: readonly string[] } {
  const [, name, parts = ""] = PARAMETER.exec(code) ?? [];
  return { name: name ?? null, parts: parts.split(",").map((part) => part.split(/[:=]/)[0]!.trim()) };
}

/** The words at the end of a path such as `context.payload`, null where nothing is known of it. */
export function wordsAt(words: Words, code: string, path: readonly string[]): Word | null {
  const [first, ...rest] = path;
  const { name, parts } = parameterOf(code);
  const context = words.get("context");
  const isPart = first !== undefined && parts.includes(first);
  const start = isPart
    ? context?.members.get(first)
    : first === name || first === "context"
      ? context
      : words.get(first ?? "");
  return rest.reduce<Word | undefined>((at, key) => at?.members.get(key), start) ?? null;
}

/** The path before the dot at the end of a line's beginning: `context.payload.` gives both names. */
export function pathBefore(text: string): string[] | null {
  return CHAIN.exec(text)?.[1]?.split(/\??\./) ?? null;
}
