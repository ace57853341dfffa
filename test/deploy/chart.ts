/**
 * Renders the chart's templates, which use a small part of Helm's language: values by path, `quote`, `if`, `if not`, `range` over a map.
 * Any other expression in a rendered block is an error, so that an unsupported template cannot pass.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { load, loadAll } from "js-yaml";

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  // biome-ignore lint/suspicious/noExplicitAny: the type depends on the kind of resource
  spec: any;
}

type Scope = Record<string, unknown>;
type Token = { text: string } | { action: string };

/** Splits a template into tokens. A dash inside a brace removes the white space on its side, as in Go's templates. */
function tokensOf(template: string): Token[] {
  const tokens: Token[] = [];
  let text = "";
  let at = 0;
  for (const found of template.matchAll(/\{\{(-)?\s*(.*?)\s*(-)?\}\}/g)) {
    text += template.slice(at, found.index);
    tokens.push({ text: found[1] ? text.trimEnd() : text }, { action: found[2]! });
    at = found.index + found[0].length;
    text = "";
    if (found[3]) at += /^\s*/.exec(template.slice(at))![0].length;
  }
  return [...tokens, { text: text + template.slice(at) }];
}

function valueAt(path: string, scope: Scope): unknown {
  if (/^\$\w+$/.test(path) && path in scope) return scope[path];
  if (!/^(\.\w+)+$/.test(path)) throw new Error(`the chart's test does not understand {{ ${path} }}`);
  const value = path
    .slice(1)
    .split(".")
    .reduce<unknown>((object, name) => (object as Scope | undefined)?.[name], scope);
  if (value === undefined) throw new Error(`the chart's values have no ${path}`);
  return value;
}

function printed(action: string, scope: Scope): string {
  const [path = "", filter, more] = action.split(/\s*\|\s*/);
  if (more !== undefined || (filter !== undefined && filter !== "quote"))
    throw new Error(`the chart's test does not understand {{ ${action} }}`);
  const value = String(valueAt(path, scope));
  return filter ? JSON.stringify(value) : value;
}

/** Renders the tokens of a block up to its `end`. Returns the text, and the position behind the block. */
function renderBlock(tokens: readonly Token[], from: number, scope: Scope | null): { text: string; next: number } {
  let text = "";
  for (let at = from; at < tokens.length; ) {
    const token = tokens[at]!;
    at += 1;
    if ("text" in token) {
      text += token.text;
      continue;
    }
    if (token.action === "end") return { text, next: at };
    const [, not, condition] = /^if (not )?(\S+)$/.exec(token.action) ?? [];
    const [, key, value, list] = /^range (\$\w+), (\$\w+) := (\S+)$/.exec(token.action) ?? [];
    if (condition) {
      const holds = scope !== null && Boolean(valueAt(condition, scope)) !== Boolean(not);
      const inner = renderBlock(tokens, at, holds ? scope : null);
      if (holds) text += inner.text;
      at = inner.next;
    } else if (list) {
      const entries = scope === null ? [] : Object.entries(valueAt(list, scope) as Scope).sort();
      for (const [name, item] of entries)
        text += renderBlock(tokens, at, { ...scope, [key!]: name, [value!]: item }).text;
      at = renderBlock(tokens, at, null).next;
    } else if (scope !== null) text += printed(token.action, scope);
  }
  return { text, next: tokens.length };
}

type Values = Record<string, Record<string, unknown>>;

/** Renders the chart's documents for Kubernetes. @param change changes the values as an operator would */
export function renderChart(folder: string, change: (values: Values) => void = () => undefined): Manifest[] {
  const values = load(readFileSync(join(folder, "values.yaml"), "utf8")) as Values;
  change(values);
  const scope = { Values: values, Release: { Name: "actions" } };
  const templates = readdirSync(join(folder, "templates")).sort();
  return templates.flatMap((name) => {
    const { text } = renderBlock(tokensOf(readFileSync(join(folder, "templates", name), "utf8")), 0, scope);
    return (loadAll(text) as (Manifest | null | undefined)[]).filter(
      (manifest) => manifest !== null && manifest !== undefined,
    );
  });
}
