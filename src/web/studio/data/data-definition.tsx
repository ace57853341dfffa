/** What a data source says of itself: name, access rules, hooks, indexes, each as JSON, and its snapshots. */
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { ListEntryVersions, type ListEntryVersionsQuery, RestoreEntries, UpdateDataSource } from "../documents.js";
import { type Api, asApiError, isChanged } from "../shared/api.js";
import { ChangedElsewhere } from "../shared/changed-elsewhere.js";
import type { Ask } from "../shared/confirm.js";
import { ago, counted, exact } from "../shared/format.js";
import type { DataSource } from "../shared/model.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { useLoaded } from "../shared/use-loaded.js";
import { Changes } from "../shell/role.js";
import { AccessTrial } from "./access-trial.js";
import { RecentQueries } from "./recent-queries.js";

const HINTS = {
  accessRules:
    "Who of an app's pages may do what: the first rule that fits decides, and without one nobody may anything.",
  hooks:
    "What is done to columns as they are written (trim, lower, upper, hash), and which e-mails and text messages are then sent.",
  indexes:
    'Columns, or lists of them, that make a where or an order fast; {"columns": ["Email"], "unique": true} keeps two entries from sharing a value.',
};
type ListField = keyof typeof HINTS;

interface DefinitionProps {
  api: Api;
  appId: number;
  source: DataSource;
  onChanged: (source: DataSource) => void;
  /** The texts of a field are unsaved, or not any more. */
  onDirty: (field: string, isDirty: boolean) => void;
}

function useChange({ api, appId, source, onChanged }: DefinitionProps) {
  return useCallback(
    async (data: Record<string, unknown>): Promise<string | null> => {
      try {
        const { id, updatedAt: ifUpdatedAt } = source;
        onChanged((await api.ask(UpdateDataSource, { appId, id, data, ifUpdatedAt })).updated);
        return null;
      } catch (error) {
        if (isChanged(error))
          return "Not saved: someone else changed this data source. Reload the page to see it as it is now.";
        return asApiError(error).message;
      }
    },
    [api, appId, source, onChanged],
  );
}

interface ListEditorProps extends DefinitionProps {
  field: ListField;
  /** What stands below, made for the text as it is typed; `save` takes another value of the field. */
  below?: (text: string, save: (value: unknown) => Promise<unknown>) => ReactNode;
}

function ListEditor({ field, below, ...props }: ListEditorProps) {
  const stored = JSON.stringify(props.source[field], null, 2);
  const fieldDraft = useFieldDraft(stored);
  const { draft: text, setDraft: setText, isDirty } = fieldDraft;
  const { onDirty } = props;
  useEffect(() => onDirty(field, isDirty), [onDirty, field, isDirty]);
  const [fault, setFault] = useState<string | null>(null);
  const change = useChange(props);
  const put = async (value: unknown) => {
    const refusal = await change({ [field]: value });
    setFault(refusal);
    return refusal === null;
  };
  const save = async () => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      return setFault(`This is no JSON: ${(error as Error).message}`);
    }
    if (await put(value)) fieldDraft.accept(text);
  };
  return (
    <section className="field" data-field={field}>
      <label htmlFor={field}>{field}</label>
      <textarea
        id={field}
        className="mono"
        rows={Math.min(14, text.split("\n").length + 1)}
        spellCheck={false}
        value={text}
        aria-invalid={fault !== null}
        aria-describedby={`${field}-fault ${field}-hint`}
        onChange={(event) => setText(event.target.value)}
      />
      <p id={`${field}-fault`} className="fault" role="alert">
        {fault}
      </p>
      <p id={`${field}-hint`} className="hint">
        {HINTS[field]}
      </p>
      <ChangedElsewhere label={field} field={fieldDraft} />
      <p className="row">
        <button
          type="button"
          disabled={!fieldDraft.isDirty || fieldDraft.isChangedElsewhere}
          onClick={() => void save()}
        >
          Save {field}
        </button>
      </p>
      {below?.(text, put)}
    </section>
  );
}

function UsersMark(props: DefinitionProps) {
  const { isUsers } = props.source;
  const [fault, setFault] = useState<string | null>(null);
  const change = useChange(props);
  const mark = async (value: boolean) => setFault(await change({ isUsers: value }));
  return (
    <section className="field" data-field="isUsers">
      <label>
        <input type="checkbox" checked={isUsers} onChange={(event) => void mark(event.target.checked)} /> Holds the
        app's users
      </label>
      <p className="fault" role="alert">
        {fault}
      </p>
      <p className="hint">
        Pages sign in by its entries. It needs a column that a hook hashes, such as a password. Data sources without
        this mark sign no one in.
      </p>
    </section>
  );
}

/** An index that is asked for joins those that are kept, not what is being typed. */
function IndexedQueries({ save, ...props }: DefinitionProps & { save: (value: unknown) => Promise<unknown> }) {
  const indexes = props.source.indexes as unknown[];
  const add = ([...columns]: string[]) => save([...indexes, columns.length === 1 ? columns[0] : columns]);
  return <RecentQueries {...props} onAdd={(columns) => void add(columns)} />;
}

export function DataDefinition(props: DefinitionProps) {
  return (
    <div className="data-definition">
      {(Object.keys(HINTS) as ListField[]).map((field) => (
        <ListEditor
          key={field}
          field={field}
          {...props}
          {...(field === "accessRules" && { below: (rules) => <AccessTrial {...props} rules={rules} /> })}
          {...(field === "indexes" && { below: (_text, save) => <IndexedQueries {...props} save={save} /> })}
        />
      ))}
      <UsersMark {...props} />
    </div>
  );
}

type Versions = ListEntryVersionsQuery["versions"];

export function DataVersions({
  api,
  appId,
  source,
  ask,
  onRestored,
}: Omit<DefinitionProps, "onChanged" | "onDirty"> & { ask: Ask; onRestored: () => void }) {
  const { id } = source;
  const read = useCallback(async () => (await api.ask(ListEntryVersions, { appId, id })).versions, [api, appId, id]);
  const { value: versions, fault, change } = useLoaded(api, read);
  const restore = async (version: Versions[number]) => {
    const text = `The entries become the ${version.entries} that they were on ${exact(version.createdAt)}. Those of now are kept as a version first.`;
    if (!(await ask({ title: "Restore these entries?", text, yes: "Restore" }))) return;
    const { updatedAt: ifUpdatedAt } = source;
    if (await change(() => api.ask(RestoreEntries, { appId, id, versionId: version.id, ifUpdatedAt }))) onRestored();
  };
  return (
    <div className="data-versions">
      <p className="hint">
        A snapshot is taken before an import, a restore and whatever removes more than a thousand entries.
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul>
        {versions?.map((version) => (
          <li key={version.id} className="row">
            <b title={exact(version.createdAt)}>{ago(version.createdAt)}</b>
            <span className="chip">before {version.operation}</span>
            <span className="hint grow">{counted(version.entries, "entry", "entries")}</span>
            <Changes>
              <button type="button" onClick={() => void restore(version)}>
                Restore
              </button>
            </Changes>
          </li>
        ))}
      </ul>
      {versions?.length === 0 && <p className="hint">None yet.</p>}
    </div>
  );
}
