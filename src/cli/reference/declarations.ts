/** Reads the members of TypeScript interfaces, each with its comment, from the declarations that authors get as svc.d.ts. */

export interface Member {
  name: string;
  /** As declared, in one line. */
  signature: string;
  comment: string;
}

/** Returns the text of a comment, without the marks of its lines. */
const plainComment = (text: string): string =>
  text
    .replaceAll("/**", "")
    .replaceAll("*/", "")
    .split("\n")
    .map((line) => line.trim())
    .map((line) => (line.startsWith("*") ? line.slice(1).trim() : line))
    .join(" ")
    .trim();

/** Returns the text without its comments. */
function withoutComments(text: string): string {
  const start = text.indexOf("/**");
  const end = text.indexOf("*/", start);
  if (start < 0 || end < 0) return text;
  return `${text.slice(0, start)}${withoutComments(text.slice(end + 2).trimStart())}`;
}

const depthOf = (text: string): number =>
  [...text].reduce((depth, one) => depth + ("({[".includes(one) ? 1 : ")}]".includes(one) ? -1 : 0), 0);

/** Returns the lines between the braces of `export interface name`. */
function bodyOf(source: string, name: string): string[] | null {
  const lines = source.split("\n");
  const start = lines.findIndex((line) => line.startsWith(`export interface ${name} `));
  if (start < 0) return null;
  const end = lines.findIndex((line, at) => at > start && line === "}");
  return lines.slice(start + 1, end);
}

/** Members of an interface in the order of its source; overloads keep their name. @throws Error if no source has the interface */
export function membersOf(sources: readonly string[], name: string): Member[] {
  const body = sources.map((source) => bodyOf(source, name)).find((lines) => lines !== null);
  if (!body) throw new Error(`no declaration of the interface ${name}`);
  const members: Member[] = [];
  let comment = "";
  let open = "";
  for (const line of body) {
    const text = line.trim();
    if (open === "" && (comment.startsWith("/**") ? !comment.endsWith("*/") : text.startsWith("/**"))) {
      comment = `${comment}\n${text}`.trim();
      continue;
    }
    if (text.startsWith("//")) continue;
    open = `${open} ${text}`.trim();
    if (!open.endsWith(";") || depthOf(open) > 0) continue;
    const signature = withoutComments(open.slice(0, -1)).replaceAll("( ", "(").replaceAll(", )", ")");
    members.push({
      name: /^\w*/.exec(signature.replace(/^readonly /, ""))![0],
      signature,
      comment: plainComment(comment),
    });
    [open, comment] = ["", ""];
  }
  return members;
}
