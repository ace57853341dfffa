/** Reads the members of TypeScript interfaces with their comments: from svc.d.ts (the types for authors), and from src/errors.ts. */

export interface InterfaceMember {
  name: string;
  signature: string;
  comment: string;
}

const toPlainComment = (text: string): string =>
  text
    .replaceAll("/**", "")
    .replaceAll("*/", "")
    .split("\n")
    .map((line) => line.trim())
    .map((line) => (line.startsWith("*") ? line.slice(1).trim() : line))
    .join(" ")
    .trim();

function removeComments(text: string): string {
  const start = text.indexOf("/**");
  const commentEnd = text.indexOf("*/", start);
  if (start < 0 || commentEnd < 0) return text;
  return `${text.slice(0, start)}${removeComments(text.slice(commentEnd + 2).trimStart())}`;
}

const countOpenBrackets = (text: string): number =>
  [...text].reduce(
    (depth, character) => depth + ("({[".includes(character) ? 1 : ")}]".includes(character) ? -1 : 0),
    0,
  );

function parseDeclarationHead(line: string): { kind: string; name: string; rest: string } | null {
  const [head = "", kind = "", name = ""] = /^(?:export )?(interface|type) (\w+)/.exec(line) ?? [];
  return name === "" ? null : { kind, name, rest: line.slice(head.length) };
}

function findInterfaceLines(source: string, name: string): string[] | null {
  const lines = source.split("\n");
  const start = lines.findIndex(
    (line) => parseDeclarationHead(line)?.kind === "interface" && parseDeclarationHead(line)?.name === name,
  );
  if (start < 0) return null;
  const bodyEnd = lines.findIndex((line, index) => index > start && line === "}");
  return lines.slice(start + 1, bodyEnd);
}

/** Returns the members of an interface in the order of its source, including overloads. @throws Error if no source has the interface */
export function parseMembers(sources: readonly string[], name: string): InterfaceMember[] {
  const body = sources.map((source) => findInterfaceLines(source, name)).find((lines) => lines !== null);
  if (!body) throw new Error(`none of the source files declares the interface ${name}`);
  const members: InterfaceMember[] = [];
  let comment = "";
  let memberText = "";
  for (const line of body) {
    const text = line.trim();
    if (memberText === "" && (comment.startsWith("/**") ? !comment.endsWith("*/") : text.startsWith("/**"))) {
      comment = `${comment}\n${text}`.trim();
      continue;
    }
    if (text.startsWith("//")) continue;
    memberText = `${memberText} ${text}`.trim();
    if (!memberText.endsWith(";") || countOpenBrackets(memberText) > 0) continue;
    const signature = removeComments(memberText.slice(0, -1)).replaceAll("( ", "(").replaceAll(", )", ")");
    members.push({
      name: /^\w*/.exec(signature.replace(/^readonly /, ""))![0],
      signature,
      comment: toPlainComment(comment),
    });
    [memberText, comment] = ["", ""];
  }
  return members;
}

export interface Declaration {
  name: string;
  comment: string;
  /** Text of a type alias in one line. For an interface, the types that it extends, or "". */
  text: string;
  isAlias: boolean;
}

/** Returns the interfaces and type aliases at the top level of a source file. */
export function parseDeclarations(source: string): Declaration[] {
  const declarations: Declaration[] = [];
  let comment = "";
  let isCommentOpen = false;
  let unfinishedAlias: Declaration | null = null;
  for (const line of source.split("\n")) {
    if (unfinishedAlias) {
      unfinishedAlias.text = `${unfinishedAlias.text} ${line.trim()}`.trim();
      if (line.endsWith(";") && countOpenBrackets(unfinishedAlias.text) === 0) unfinishedAlias = null;
      continue;
    }
    if (line.startsWith("/**") || isCommentOpen) {
      comment = isCommentOpen ? `${comment}\n${line}` : line;
      isCommentOpen = !line.trimEnd().endsWith("*/");
      continue;
    }
    const head = parseDeclarationHead(line);
    if (head) {
      const isAlias = head.kind === "type";
      const text = isAlias ? head.rest.slice(head.rest.indexOf("=") + 1).trim() : parseExtends(head.rest);
      const declaration = { name: head.name, comment: toPlainComment(comment), text, isAlias };
      declarations.push(declaration);
      if (isAlias && !line.endsWith(";")) unfinishedAlias = declaration;
    }
    comment = "";
  }
  return declarations.map((declaration) =>
    declaration.isAlias ? { ...declaration, text: formatAlias(declaration.text) } : declaration,
  );
}

function parseExtends(rest: string): string {
  const start = rest.lastIndexOf(" extends ");
  return start < 0 ? "" : rest.slice(start + " extends ".length, rest.lastIndexOf("{")).trim();
}

function formatAlias(text: string): string {
  const plain = text.replaceAll(/\/\*\*[^*]*\*\/ ?/g, "").replace(/;$/, "");
  return plain.startsWith("| ") ? plain.slice(2) : plain;
}
