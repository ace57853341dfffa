/**
 * Form that tries unsaved access rules as an app user or an anonymous visitor. Shows which operations the rules allow, and the first entries
 * that this person could read. Stores no rules and grants no access.
 */
import { keepPreviousData } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { FindEntries, ListDataSources, TryAccessRules, type TryAccessRulesQuery } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import type { DataSource } from "../shared/model.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { useDebouncedText } from "./use-debounced-text.js";
import { getColumnPath } from "./use-entries.js";

interface AccessTrialFormProps {
  api: ApiClient;
  appId: number;
  source: DataSource;
  /** Unsaved access rules of the form, as JSON. */
  rulesJson: string;
}

interface AppUser {
  id: number;
  data: Record<string, unknown>;
}

const MAX_USERS_SHOWN = 20;

const getUserTitle = ({ id, data }: AppUser): string =>
  `${id}: ${Object.values(data)
    .filter((value) => typeof value === "string" && value !== "")
    .slice(0, 3)
    .join(", ")
    .slice(0, 80)}`;

/** Hook that returns the app users with a column that contains the typed words. `fault` is the error message if they cannot be read. */
function useAppUsers({ appId }: AccessTrialFormProps, users: DataSource | undefined, text: string) {
  const searchText = useDebouncedText(text);
  const where = { $or: users?.columns.map((column) => ({ [getColumnPath(column)]: { $iLike: searchText } })) };
  const query = { ...(searchText !== "" && users && users.columns.length > 0 && { where }), limit: MAX_USERS_SHOWN };
  const { value, fault } = useResource({
    ...createQueryOptions(FindEntries, { appId, id: users?.id ?? 0, query }),
    enabled: users !== undefined,
    placeholderData: keepPreviousData,
  });
  return { users: users ? ((value?.found.entries ?? []) as AppUser[]) : [], fault };
}

type AccessTrialResult = TryAccessRulesQuery["trial"];

function TrialOutcome({ trial, columns }: { trial: AccessTrialResult; columns: string[] }) {
  const readableColumns = trial.verbs.find(({ verb }) => verb === "select")?.columns ?? [];
  const shownColumns = columns.filter((column) => readableColumns.includes(column));
  return (
    <>
      <table className="trial-verbs">
        <tbody>
          {trial.verbs.map(({ verb, allowed, rule, required, reason, ...more }) => (
            <tr key={verb} data-verb={verb}>
              <th scope="row">{verb}</th>
              <td>{allowed ? "allowed" : "refused"}</td>
              <td>{rule === null ? "no rule matches" : `by rule ${rule + 1}`}</td>
              <td>
                {reason ?? (allowed && `columns: ${more.columns.join(", ") || "none"}`)}
                {required.length > 0 && `; must name ${required.join(", ")}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {trial.reason && <p className="fault">{trial.reason}</p>}
      {trial.entries && (
        <div className="diff">
          <table className="trial-entries">
            <thead>
              <tr>
                {["id", ...shownColumns].map((column) => (
                  <th key={column} scope="col">
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {trial.entries.map(({ id, data }) => (
                <tr key={id}>
                  <td>{id}</td>
                  {shownColumns.map((column) => (
                    <td key={column}>{JSON.stringify((data as Record<string, unknown>)[column] ?? null)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {trial.entries.length === 0 && <p className="hint">They would see no entries.</p>}
        </div>
      )}
    </>
  );
}

export function AccessTrialForm(props: AccessTrialFormProps) {
  const { api, appId, source, rulesJson } = props;
  const { value, fault: readFault } = useResource(createQueryOptions(ListDataSources, { appId }));
  const dataSources = value?.dataSources ?? [];
  const [usersSourceId, setUsersSourceId] = useState("");
  const [searchText, setSearchText] = useState("");
  /** App user that the trial of the rules uses. The choice stays even if a later search does not find this user. */
  const [user, setUser] = useState<AppUser | null>(null);
  const [trial, setTrial] = useState<AccessTrialResult | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const { users, fault: usersFault } = useAppUsers(
    props,
    dataSources.find(({ id }) => String(id) === usersSourceId),
    searchText.trim(),
  );
  const listedUsers = user && !users.some(({ id }) => id === user.id) ? [user, ...users] : users;
  const latestTrial = useRef(0);
  const runTrial = async () => {
    latestTrial.current += 1;
    const trialNumber = latestTrial.current;
    setTrial(null);
    try {
      const asUser = user && { dataSourceId: Number(usersSourceId), entryId: user.id };
      const accessRules: unknown = JSON.parse(rulesJson);
      const { trial: result } = await api.request(TryAccessRules, {
        ...{ appId, id: source.id },
        trial: { user: asUser, accessRules },
      });
      // Ignores the result if the person has started a newer trial since the request.
      if (trialNumber !== latestTrial.current) return;
      setTrial(result);
      setFault(null);
    } catch (error) {
      if (trialNumber !== latestTrial.current) return;
      setFault(
        error instanceof SyntaxError ? `The rules are not valid JSON: ${error.message}` : asApiError(error).message,
      );
    }
  };
  return (
    <section className="access-trial" aria-label="Try the rules">
      <p className="row">
        <label>
          Try as{" "}
          <select
            aria-label="Users are entries of"
            value={usersSourceId}
            onChange={(event) => {
              setUsersSourceId(event.target.value);
              setUser(null);
            }}
          >
            <option value="">An anonymous visitor</option>
            {dataSources.map(({ id, name }) => (
              <option key={id} value={id}>
                A user of {name}
              </option>
            ))}
          </select>
        </label>
        {usersSourceId !== "" && (
          <>
            <input
              type="search"
              aria-label="Find the user"
              placeholder="Find the user"
              value={searchText}
              onChange={(event) => setSearchText(event.target.value)}
            />
            <select
              aria-label="The user"
              value={user?.id ?? ""}
              onChange={({ target }) => setUser(listedUsers.find(({ id }) => String(id) === target.value) ?? null)}
            >
              <option value="">Choose a user…</option>
              {listedUsers.map((user) => (
                <option key={user.id} value={user.id}>
                  {getUserTitle(user)}
                </option>
              ))}
            </select>
          </>
        )}
        <button type="button" disabled={usersSourceId !== "" && user === null} onClick={() => void runTrial()}>
          Try these rules
        </button>
      </p>
      <p className="fault" role="alert">
        {fault ?? readFault ?? usersFault}
      </p>
      {trial && <TrialOutcome trial={trial} columns={source.columns} />}
    </section>
  );
}
