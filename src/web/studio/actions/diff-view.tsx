/** Shows the difference between two states of an action: changed fields before and after, then the code line by line. */
import { shown } from "../shared/format.js";
import type { Diff } from "../shared/model.js";

const KINDS: Record<string, string> = { "+": "added", "-": "removed", "@": "hunk", "\\": "note" };

/** Removes the nulls with which GraphQL fills unused fields of a trigger. */
function plain(value: Diff["before"][keyof Diff["before"]]): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((item) => {
    if (typeof item === "string" || !item.where) return typeof item === "string" ? item : { trigger: item.trigger };
    const given = Object.entries(item.where).filter(([, part]) => part !== null);
    return { trigger: item.trigger, where: Object.fromEntries(given) };
  });
}

/** Returns the lines of a unified diff without its two header lines. */
function linesOf(patch: string): string[] {
  const lines = patch.replace(/\n$/, "").split("\n");
  return lines.slice(lines.findIndex((line) => line.startsWith("@@")));
}

/** Lines of a unified diff: added, removed and unchanged lines. */
export function PatchLines({ patch }: { patch: string }) {
  return (
    <pre>
      {linesOf(patch).map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a diff do not move
        <span key={index} className={KINDS[line[0] ?? ""] ?? ""}>
          {`${line}\n`}
        </span>
      ))}
    </pre>
  );
}

export function DiffView({ diff: { fields, before, after, code } }: { diff: Diff }) {
  if (fields.length === 0 && code === null) return <p className="hint">There is no difference.</p>;
  return (
    <div className="diff">
      {fields.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {fields
              .filter((field) => field !== "code" && field !== "assets")
              .map((field) => (
                <tr key={field}>
                  <th scope="row">{field}</th>
                  <td className="removed">{shown(plain(before[field]))}</td>
                  <td className="added">{shown(plain(after[field]))}</td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
      {fields.includes("assets") && <p>The scripts of packages are not those of the live version.</p>}
      {code !== null && <PatchLines patch={code} />}
    </div>
  );
}
