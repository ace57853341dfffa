/** Compares the JSON that a page shows as a response with the output of the page's commands. */

/** Parses the last JSON document in a text, which is the output of the last command. @throws Error if there is none */
export function lastJson(printed: string): unknown {
  const text = printed.trim();
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "{" && text[at] !== "[" && at > 0) continue;
    try {
      return JSON.parse(text.slice(at));
    } catch {
      // No JSON begins here, so the loop tries the next position.
    }
  }
  throw new Error(`the commands printed no JSON: ${text.slice(-300)}`);
}

/** Returns the lines of a shown output that the printed text lacks. `…` stands for any text within a line. */
export function missingLines(shown: string, printed: string): string[] {
  const printedLines = printed.split("\n").map((line) => line.trim());
  return shown
    .trim()
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => {
      const parts = line.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      const pattern = new RegExp(`^${parts.join(".*")}$`);
      return !printedLines.some((printedLine) => pattern.test(printedLine));
    });
}

/** True for names of fields whose numbers depend on earlier commands. */
const isId = (name: string): boolean => /^(?:id|\w+Id)$/.test(name);

/**
 * Returns the paths at which the real response differs from the one on the page. An object on the page may omit fields. On the page, `…` in
 * a text stands for any text, and an ID for any ID.
 */
export function differences(shown: unknown, real: unknown, path = ""): string[] {
  if (typeof shown === "string" && shown.includes("…")) {
    const [start = "", end = ""] = shown.split("…");
    const fits = typeof real === "string" && real.startsWith(start) && real.endsWith(end);
    return fits ? [] : [`${path}: ${JSON.stringify(real)}`];
  }
  if (typeof shown !== "object" || shown === null) {
    const name = path.split(".").at(-1)!;
    const fits = shown === real || (typeof shown === "number" && typeof real === "number" && isId(name));
    return fits ? [] : [`${path}: ${JSON.stringify(real)}`];
  }
  if (typeof real !== "object" || real === null || Array.isArray(shown) !== Array.isArray(real)) {
    return [`${path}: ${JSON.stringify(real)}`];
  }
  const lengths = Array.isArray(shown) && shown.length !== (real as unknown[]).length ? [`${path}: its length`] : [];
  const inside = Object.entries(shown).flatMap(([name, value]) =>
    differences(value, (real as Record<string, unknown>)[name], path === "" ? name : `${path}.${name}`),
  );
  return [...lengths, ...inside];
}
