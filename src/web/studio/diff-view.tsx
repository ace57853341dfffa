/** A difference between two states of an action: fields before and after, then the code line by line. */
import { shown } from "./format.js";
import type { Diff } from "./model.js";

const KINDS: Record<string, string> = { "+": "added", "-": "removed", "@": "hunk", "\\": "note" };

/** The lines of a unified diff below its two headings. */
function linesOf(patch: string): string[] {
  const lines = patch.replace(/\n$/, "").split("\n");
  return lines.slice(lines.findIndex((line) => line.startsWith("@@")));
}

export function DiffView({ diff: { changes, code } }: { diff: Diff }) {
  if (changes.length === 0 && code === null) return <p className="hint">There is no difference.</p>;
  return (
    <div className="diff">
      {changes.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ field, before, after }) => (
              <tr key={field}>
                <th scope="row">{field}</th>
                <td className="removed">{shown(before)}</td>
                <td className="added">{shown(after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {code !== null && (
        <pre>
          {linesOf(code).map((line, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one diff never move
            <span key={index} className={KINDS[line[0] ?? ""] ?? ""}>
              {`${line}\n`}
            </span>
          ))}
        </pre>
      )}
    </div>
  );
}
