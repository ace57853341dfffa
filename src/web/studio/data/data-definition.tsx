/** Tabs of a data source: Rules (access rules, hooks, indexes, the check box for app users) and Versions (snapshots of all entries). */
import { type ReactNode, useCallback, useState } from "react";
import { ListEntryVersions, type ListEntryVersionsQuery, RestoreEntries, UpdateDataSource } from "../documents.js";
import { type ApiClient, asApiError, isChangedByOthersError } from "../shared/api.js";
import type { ConfirmFunction } from "../shared/confirm.js";
import { formatAge, formatCount, formatExactTime } from "../shared/format.js";
import type { DataSource } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { ForEditors } from "../shell/role.js";
import { AccessTrialForm } from "./access-trial.js";
import { DEFINITION_PARTS, DefinitionField, type DefinitionPartName } from "./definition-field.js";
import { RecentQueries } from "./recent-queries.js";

interface DefinitionProps {
  api: ApiClient;
  appId: number;
  source: DataSource;
  onChanged: (source: DataSource) => void;
  /** Called with true when a field gets unsaved changes, and with false when the person has saved or discarded them. */
  onDirtyChange: (field: string, isDirty: boolean) => void;
}

function useDataSourceChange({ api, appId, source, onChanged }: DefinitionProps) {
  return useCallback(
    async (data: Record<string, unknown>): Promise<string | null> => {
      try {
        const { id, updatedAt: ifUpdatedAt } = source;
        onChanged((await api.request(UpdateDataSource, { appId, id, data, ifUpdatedAt })).updated);
        return null;
      } catch (error) {
        if (isChangedByOthersError(error))
          return "Not saved: someone else changed this data source. Reload the page to see it as it is now.";
        return asApiError(error).message;
      }
    },
    [api, appId, source, onChanged],
  );
}

function UsersCheckBox(props: DefinitionProps) {
  const { isUsers } = props.source;
  const [fault, setFault] = useState<string | null>(null);
  const changeDataSource = useDataSourceChange(props);
  const changeIsUsers = async (value: boolean) => setFault(await changeDataSource({ isUsers: value }));
  return (
    <section className="field" data-field="isUsers">
      <label>
        <input type="checkbox" checked={isUsers} onChange={(event) => void changeIsUsers(event.target.checked)} /> Holds
        the app's users
      </label>
      <p className="fault" role="alert">
        {fault}
      </p>
      <p className="hint">
        Each entry is then an app user, who can sign in to the app's pages. The data source needs a column that a hook
        hashes, such as a password.
      </p>
    </section>
  );
}

export function DataSourceDefinition(props: DefinitionProps) {
  const { source, onDirtyChange } = props;
  const changeDataSource = useDataSourceChange(props);
  const renderBelowByPart: Partial<Record<DefinitionPartName, (text: string) => ReactNode>> = {
    accessRules: (rules) => <AccessTrialForm {...props} rulesJson={rules} />,
    // Adding a suggested index saves it together with the stored indexes. Unsaved changes in the form are not saved
    // with it.
    indexes: () => (
      <RecentQueries
        {...props}
        addIndex={([...columns]) =>
          void changeDataSource({
            indexes: [...(source.indexes as unknown[]), columns.length === 1 ? columns[0] : columns],
          })
        }
      />
    ),
  };
  return (
    <div className="data-definition">
      {(Object.keys(DEFINITION_PARTS) as DefinitionPartName[]).map((field) => (
        <DefinitionField
          key={field}
          field={field}
          storedValue={source[field]}
          columns={source.columns}
          saveValue={(value) => changeDataSource({ [field]: value })}
          onDirtyChange={onDirtyChange}
          renderBelow={renderBelowByPart[field]}
        />
      ))}
      <UsersCheckBox {...props} />
    </div>
  );
}

type EntryVersions = ListEntryVersionsQuery["versions"];

export function DataSourceVersions({
  api,
  appId,
  source,
  confirm,
  onRestored,
}: Omit<DefinitionProps, "onChanged" | "onDirtyChange"> & { confirm: ConfirmFunction; onRestored: () => void }) {
  const { id } = source;
  const { value, fault, applyChange } = useResource(createQueryOptions(ListEntryVersions, { appId, id }));
  const restoreVersion = async (version: EntryVersions[number]) => {
    const text = `This restores the ${version.entries} entries of ${formatExactTime(version.createdAt)}. The current entries are stored as a version first.`;
    if (!(await confirm({ title: "Restore these entries?", explanation: text, confirmLabel: "Restore" }))) return;
    const { updatedAt: ifUpdatedAt } = source;
    if (await applyChange(() => api.request(RestoreEntries, { appId, id, versionId: version.id, ifUpdatedAt })))
      onRestored();
  };
  return (
    <div className="data-versions">
      <p className="hint">
        The service stores a snapshot before it replaces all entries, before it imports or removes more than 1,000
        entries, and before a restore.
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul>
        {value?.versions.map((version) => (
          <li key={version.id} className="row">
            <b title={formatExactTime(version.createdAt)}>{formatAge(version.createdAt)}</b>
            <span className="chip">before {version.operation}</span>
            <span className="hint grow">{formatCount(version.entries, "entry", "entries")}</span>
            <ForEditors>
              <button type="button" onClick={() => void restoreVersion(version)}>
                Restore
              </button>
            </ForEditors>
          </li>
        ))}
      </ul>
      {value?.versions.length === 0 && <p className="hint">No snapshots yet.</p>}
    </div>
  );
}
