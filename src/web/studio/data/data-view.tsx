/** Page of the app's data sources: the list, and the open data source with its entries, file import, rules and snapshots. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import {
  CreateDataSource,
  DeleteDataSource,
  FindEntries,
  ListDataSources,
  type ListDataSourcesQuery,
} from "../documents.js";
import { asApiError, handleRejectedChange } from "../shared/api.js";
import { formatCount } from "../shared/format.js";
import type { DataSource } from "../shared/model.js";
import { TabPanel } from "../shared/tab-list.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import type { PageProps } from "../shell/page-props.js";
import { mayEdit } from "../shell/rights.js";
import { ForEditors, useRole } from "../shell/role.js";
import { mergeQuery, parseId } from "../shell/studio-route.js";
import { DataSourceDefinition, DataSourceVersions } from "./data-definition.js";
import { DataImport, type FileToImport, getDelimiterName, importFile } from "./data-import.js";
import { type DataSourcePanelProps, type DataSourceUrlQuery, EntriesPanel } from "./entries-panel.js";
import { detectEntryTypes } from "./import-preview.js";

/** For an import, Studio detects the types of the columns from the values of this many existing entries. */
const TYPE_SAMPLE_ENTRIES = 50;
const REFRESH_INTERVAL_MS = 3_000;
const DATA_VIEW_TABS = ["Entries", "Import", "Rules", "Versions"] as const;
type DataViewTab = (typeof DATA_VIEW_TABS)[number];
const READER_TABS: readonly DataViewTab[] = ["Entries", "Versions"];

interface DataSourceTabsProps extends Omit<DataSourcePanelProps, "reload" | "onDirtyChange"> {
  reload: () => Promise<void>;
  onChanged: (source: DataSource) => void;
  onRemoved: () => void;
  /** True if this data source was deleted elsewhere, such as by another person, while it has unsaved changes here. */
  isDeleted: boolean;
  setDirty: (isDirty: boolean) => void;
}

/**
 * Heading of the open data source. On a phone, opening a data source hides the list and the focused button in it. The heading then
 * receives the focus.
 */
function SourceHeading({ name }: { name: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    if (document.activeElement?.checkVisibility() === false) heading.current?.focus();
  }, []);
  return (
    <h2 ref={heading} tabIndex={-1}>
      {name}
    </h2>
  );
}

function DataSourceTabs(props: DataSourceTabsProps) {
  const { api, appId, confirm, source, onChanged, onRemoved, reload } = props;
  const { setDirty, query, changeQuery, isDeleted } = props;
  const isEditor = mayEdit(useRole());
  const tabs = isEditor ? DATA_VIEW_TABS : READER_TABS;
  const tab = tabs.find((name) => name.toLowerCase() === query.tab) ?? "Entries";
  const unsavedFields = useRef(new Set<string>());
  const onDirtyChange = useCallback(
    (field: string, isDirty: boolean) => {
      unsavedFields.current[isDirty ? "add" : "delete"](field);
      setDirty(unsavedFields.current.size > 0);
    },
    [setDirty],
  );
  // When the Rules tab closes, its fields have no unsaved changes any more. The tab also closes without a question, for
  // example if the person's role changes or the data source is deleted.
  const showsRules = tab === "Rules";
  useEffect(() => {
    if (!showsRules) return;
    return () => {
      unsavedFields.current.clear();
      setDirty(false);
    };
  }, [showsRules, setDirty]);
  const selectTab = async (next: DataViewTab) => {
    if (next === tab) return;
    if (unsavedFields.current.size > 0) {
      const text = "What you changed in the rules would be lost.";
      if (
        !(await confirm({
          title: "Leave without saving?",
          explanation: text,
          confirmLabel: "Discard changes",
          isDangerous: true,
        }))
      )
        return;
    }
    changeQuery({ tab: next === "Entries" ? undefined : next.toLowerCase() });
  };
  const [fault, setFault] = useState<string | null>(null);
  const removeSource = async () => {
    const text = "This also deletes its entries and snapshots. Actions and pages can no longer read them.";
    if (
      !(await confirm({
        title: `Delete ${source.name}?`,
        explanation: text,
        confirmLabel: "Delete",
        isDangerous: true,
      }))
    )
      return;
    try {
      await api.request(DeleteDataSource, { appId, id: source.id, ifUpdatedAt: source.updatedAt });
      onRemoved();
    } catch (error) {
      setFault(await handleRejectedChange(error, reload));
    }
  };
  const importIntoSource = async (fileToImport: FileToImport) => {
    const { inserted, columns, delimiter } = await importFile(appId, source.id, fileToImport);
    await reload();
    const insertedText = formatCount(inserted, "entry was", "entries were");
    const delimiterText = delimiter === null ? "" : `, cells separated by ${getDelimiterName(delimiter)}`;
    return `${insertedText} imported: ${formatCount(columns.length, "column", "columns")}${delimiterText}.`;
  };
  const readTypes = async () => {
    const query = { limit: TYPE_SAMPLE_ENTRIES };
    return detectEntryTypes((await api.request(FindEntries, { appId, id: source.id, query })).found.entries);
  };
  const panels = {
    Entries: () => <EntriesPanel {...props} reload={() => void reload()} onDirtyChange={onDirtyChange} />,
    Import: () => <DataImport buttonLabel="Import" canAppend {...{ readTypes, importFile: importIntoSource }} />,
    Rules: () => <DataSourceDefinition {...{ api, appId, source, onChanged, onDirtyChange }} />,
    Versions: () => <DataSourceVersions {...{ api, appId, source, confirm }} onRestored={() => void reload()} />,
  };
  return (
    <section className="data-source" aria-label={source.name}>
      <div className="row workspace-head">
        <SourceHeading name={source.name} />
        <span className="hint">id {source.id}</span>
        <span className="grow" />
        <span className="fault" role="alert">
          {fault}
        </span>
        <ForEditors>
          <button type="button" className="quiet danger-text" onClick={() => void removeSource()}>
            Delete
          </button>
        </ForEditors>
      </div>
      <p className="notice" role="status">
        {isDeleted && "This data source was deleted elsewhere. Your unsaved changes cannot be saved."}
      </p>
      <TabPanel
        label="Parts of the data source"
        tabNames={tabs}
        selectedName={tab}
        selectTab={(next) => void selectTab(next)}
        isManual
        panelClass="data-panel"
      >
        {panels[tab]()}
      </TabPanel>
    </section>
  );
}

function NewDataSourceForm({
  api,
  appId,
  onCreated,
}: Pick<PageProps, "api" | "appId"> & { onCreated: (source: DataSource) => Promise<void> }) {
  const [name, setName] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const createDataSource = async (): Promise<DataSource> =>
    (await api.request(CreateDataSource, { appId, data: { name } })).created;
  const createEmptySource = async () => {
    setBusy(true);
    try {
      await onCreated(await createDataSource());
    } catch (error) {
      setFault(asApiError(error).message);
    }
    setBusy(false);
  };
  const importIntoNewSource = async (fileToImport: FileToImport) => {
    const created = await createDataSource();
    try {
      await importFile(appId, created.id, fileToImport);
    } catch (error) {
      // Ignores a failed removal, because the person must see the error of the import.
      await api
        .request(DeleteDataSource, { appId, id: created.id, ifUpdatedAt: created.updatedAt })
        .catch(() => undefined);
      throw error;
    }
    await onCreated(created);
    return "";
  };
  const createFromFile = (fileToImport: FileToImport) => {
    setBusy(true);
    return importIntoNewSource(fileToImport).finally(() => setBusy(false));
  };
  return (
    <section className="data-source new" aria-label="New data source">
      <h2>New data source</h2>
      <label className="field">
        Name
        <input value={name} autoComplete="off" readOnly={isBusy} onChange={(event) => setName(event.target.value)} />
      </label>
      <p className="fault" role="alert">
        {fault}
      </p>
      <p className="row">
        <button type="button" disabled={isBusy || name.trim() === ""} onClick={() => void createEmptySource()}>
          Create empty
        </button>
        <span className="hint">
          {name.trim() === "" ? "With a name, you can also create it from a file." : "or from a file:"}
        </span>
      </p>
      {name.trim() !== "" && (
        <DataImport buttonLabel="Create from this file" canAppend={false} importFile={createFromFile} />
      )}
    </section>
  );
}

const CHOOSE_DATA_SOURCE_TEXT = (
  <div className="welcome welcome-list">
    <h2>Choose a data source</h2>
    <p>Pages and actions of the app read and write the entries of its data sources.</p>
  </div>
);

export function DataSourcesPage({ api, appId, confirm, go, route, setDirty }: PageProps) {
  const sourceId = parseId(route.item);
  const client = useQueryClient();
  const list = createQueryOptions(ListDataSources, { appId });
  const { value, fault, reload } = useResource({ ...list, refetchInterval: REFRESH_INTERVAL_MS });
  const sources = value?.dataSources;
  const isEditor = mayEdit(useRole());
  const query: DataSourceUrlQuery = route.query;
  const changeQuery = useCallback(
    // Replaces the entry in the browser's history, so that one click on Back leaves the data source. If there are unsaved
    // rules, Studio then asks the person before it leaves.
    (change: DataSourceUrlQuery) => go({ query: mergeQuery(query, change) }, { replacesHistoryEntry: true }),
    [go, query],
  );
  const replaceSource = async (changedSource: DataSource) => {
    // Cancels a read that started before the change. Its older result would overwrite the changed data source.
    await client.cancelQueries({ queryKey: list.queryKey });
    client.setQueryData<ListDataSourcesQuery>(
      list.queryKey,
      (last) =>
        last && {
          dataSources: last.dataSources.map((dataSource) =>
            dataSource.id === changedSource.id ? changedSource : dataSource,
          ),
        },
    );
  };
  const [hasUnsavedChanges, setUnsavedChanges] = useState(false);
  useUnsavedChanges(setDirty, hasUnsavedChanges);
  // The data source that was last open. If another person deletes it, the page still shows it with the unsaved changes.
  const [lastShownSource, setLastShownSource] = useState<DataSource | null>(null);
  const listedSource = sources?.find(({ id }) => id === sourceId);
  if (listedSource && listedSource !== lastShownSource) setLastShownSource(listedSource);
  const chosenSource =
    listedSource ?? (hasUnsavedChanges && lastShownSource?.id === sourceId ? lastShownSource : undefined);
  /** Opens a data source after it was created. Does nothing if the person has opened another page since the request. */
  const openCreatedSource = async ({ id }: DataSource) => {
    await reload();
    go({ item: String(id) }, { startRoute: route });
  };
  /** Opens the list after the open data source was deleted, without a question about its unsaved changes. */
  const closeRemovedSource = () => {
    go({ item: null }, { skipsQuestion: true, startRoute: route });
    void reload();
  };
  // Becomes true when the app has no data sources, and false when the person opens a data source. While it is true, the
  // form for a new data source stays open, even if another person creates a data source.
  const [wasFirstSourceFormOpen, setFirstSourceFormOpen] = useState(false);
  const isFirstSourceFormOpen = !chosenSource && (wasFirstSourceFormOpen || sources?.length === 0);
  if (isFirstSourceFormOpen !== wasFirstSourceFormOpen) setFirstSourceFormOpen(isFirstSourceFormOpen);
  const isNewRoute = isEditor && route.item === "new";
  const isNew = isNewRoute || (sourceId === null && isFirstSourceFormOpen);
  const isChoosing = !isNewRoute && (sourceId === null || (!chosenSource && (fault !== null || sources !== undefined)));
  return (
    <div className={isChoosing ? "data-view choosing" : "data-view"}>
      <nav className="data-list" aria-label="Data sources">
        <p className="fault" role="alert">
          {fault}
        </p>
        <div className="row list-head">
          <h2 className="grow">Data sources</h2>
          <ForEditors>
            <button type="button" className="primary" onClick={() => go({ item: "new" })}>
              New
            </button>
          </ForEditors>
        </div>
        <ul>
          {sources?.map(({ id, name }) => (
            <li key={id}>
              <button
                type="button"
                className="action"
                aria-current={id === sourceId ? "true" : undefined}
                onClick={() => go({ item: String(id) })}
              >
                <b>{name}</b>
              </button>
            </li>
          ))}
        </ul>
        {sources?.length === 0 && (
          <p className="hint empty">No data sources yet{isEditor && ". Create the first one here"}.</p>
        )}
      </nav>
      {chosenSource ? (
        <DataSourceTabs
          key={chosenSource.id}
          {...{ api, appId, confirm, query, changeQuery }}
          source={chosenSource}
          isDeleted={!listedSource}
          reload={reload}
          setDirty={setUnsavedChanges}
          onRemoved={closeRemovedSource}
          onChanged={(changedSource) => void replaceSource(changedSource)}
        />
      ) : isNew ? (
        <ForEditors otherwise={CHOOSE_DATA_SOURCE_TEXT}>
          <NewDataSourceForm {...{ api, appId }} onCreated={openCreatedSource} />
        </ForEditors>
      ) : sourceId === null ? (
        sources && CHOOSE_DATA_SOURCE_TEXT
      ) : (
        <p className="welcome">{sources ? "This data source does not exist." : fault === null && "Loading…"}</p>
      )}
    </div>
  );
}
