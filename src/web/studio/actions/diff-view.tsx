/** Shows the difference between two states of an action: changed fields before and after, then the code line by line. */
import { formatJson } from "../shared/format.js";
import type { ActionDiff } from "../shared/model.js";

const LINE_CLASSES: Record<string, string> = { "+": "added", "-": "removed", "@": "hunk", "\\": "note" };

/** Removes the null values that GraphQL returns for the unused fields of a trigger. */
function removeNulls(value: ActionDiff["before"][keyof ActionDiff["before"]]): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((item) => {
    if (typeof item === "string" || !item.where) return typeof item === "string" ? item : { trigger: item.trigger };
    const conditions = Object.entries(item.where).filter(([, part]) => part !== null);
    return { trigger: item.trigger, where: Object.fromEntries(conditions) };
  });
}

/** Returns the lines of a unified diff without the lines that name the two files. */
function getHunkLines(patch: string): string[] {
  const lines = patch.replace(/\n$/, "").split("\n");
  return lines.slice(lines.findIndex((line) => line.startsWith("@@")));
}

/** Shows the lines of a unified diff, with a color for added and for removed lines. */
export function PatchLines({ patch }: { patch: string }) {
  return (
    <pre>
      {getHunkLines(patch).map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a diff never change their order
        <span key={index} className={LINE_CLASSES[line[0] ?? ""] ?? ""}>
          {`${line}\n`}
        </span>
      ))}
    </pre>
  );
}

type ScriptChange = ActionDiff["scripts"][number];

/**
 * Describes how the script of a dependency changed. The script can differ even if the version is the same, because the service's bundler or
 * the package in the registry has changed.
 */
function describeScriptChange({ before, after }: ScriptChange): string {
  if (before === null) return `added${after?.version ? `, version ${after.version}` : ""}`;
  if (after === null) return `removed${before.version ? `, was version ${before.version}` : ""}`;
  if (before.version !== after.version) return `${before.version ?? "no version"} → ${after.version ?? "no version"}`;
  return `${after.version ? `version ${after.version}, ` : ""}content changed`;
}

function ScriptChanges({ scripts }: { scripts: readonly ScriptChange[] }) {
  if (scripts.length === 0) return <p>The scripts of packages load in another order.</p>;
  return (
    <>
      <p>Scripts of packages that differ from the live version:</p>
      <ul>
        {scripts.map((script) => (
          <li key={script.name}>
            <code>{script.name}</code> {describeScriptChange(script)}
          </li>
        ))}
      </ul>
    </>
  );
}

export function DiffView({ diff: { fields, before, after, code, scripts } }: { diff: ActionDiff }) {
  if (fields.length === 0 && code === null) return <p className="hint">There is no difference.</p>;
  const tableFields = fields.filter((field) => field !== "code" && field !== "assets");
  return (
    <div className="diff">
      {tableFields.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {tableFields.map((field) => (
              <tr key={field}>
                <th scope="row">{field}</th>
                <td className="removed">{formatJson(removeNulls(before[field]))}</td>
                <td className="added">{formatJson(removeNulls(after[field]))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {fields.includes("assets") && <ScriptChanges scripts={scripts} />}
      {code !== null && <PatchLines patch={code} />}
    </div>
  );
}
