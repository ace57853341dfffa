/** Describes the types that the calls of `Svc` use, for the reference page, from the declarations in svc.d.ts. */
import { type Declaration, parseDeclarations, parseMembers } from "./declarations.js";
import { formatInlineCode, formatMarkdownTable } from "./tables.js";

const findTypeNames = (text: string): string[] => text.replaceAll(/"[^"]*"/g, "").match(/\b[A-Z]\w+\b/g) ?? [];

/** Returns the part of a declaration that can refer to other types: an interface's fields, or the text of a type alias. */
const getReferringText = ({ name, text, isAlias }: Declaration, sources: readonly string[]): string =>
  isAlias ? text : [text, ...parseMembers(sources, name).map(({ signature }) => signature)].join("\n");

function findReachableTypes(
  signatures: readonly string[],
  declarationsByName: ReadonlyMap<string, Declaration>,
  sources: readonly string[],
) {
  const reachableByName = new Map<string, Declaration>();
  const queue = signatures.flatMap(findTypeNames);
  for (const name of queue) {
    const declaration = declarationsByName.get(name);
    if (!declaration || reachableByName.has(name)) continue;
    reachableByName.set(name, declaration);
    queue.push(...findTypeNames(getReferringText(declaration, sources)));
  }
  return [...reachableByName.values()];
}

function buildTypeSection({ name, comment, text, isAlias }: Declaration, sources: readonly string[]): string {
  const rows = isAlias
    ? []
    : parseMembers(sources, name).map((member) => [formatInlineCode(member.signature), member.comment]);
  return [
    `### ${name}`,
    comment,
    isAlias ? `Definition: ${formatInlineCode(text)}` : "",
    isAlias || text === "" ? "" : `Also has the fields of ${formatInlineCode(text)}.`,
    rows.length === 0 ? "" : formatMarkdownTable(["field", "meaning"], rows),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/**
 * Builds the section "Types" of the reference page.
 * @param describedTypes interfaces that other sections describe, so that this section omits them
 */
export function buildTypesSection(
  signatures: readonly string[],
  sources: readonly string[],
  describedTypes: ReadonlySet<string>,
): string {
  const declarations = sources.flatMap(parseDeclarations).filter(({ name }) => !describedTypes.has(name));
  const declarationsByName = new Map(declarations.map((declaration) => [declaration.name, declaration] as const));
  const types = findReachableTypes(signatures, declarationsByName, sources).sort((a, b) => (a.name < b.name ? -1 : 1));
  return [
    "## Types",
    "`?` marks an optional field.",
    ...types.map((declaration) => buildTypeSection(declaration, sources)),
  ].join("\n\n");
}
