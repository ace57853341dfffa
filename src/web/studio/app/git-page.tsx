/**
 * Git repository of the app: the connection, its webhook, and a pull of the branch. The person reviews a pull before it changes the app.
 */
import { type FormEvent, useState } from "react";
import { ConnectGitRepository, DisconnectGitRepository, PullGitRepository, ReadGitConnection } from "../documents.js";
import { ChangedElsewhereNotice } from "../shared/changed-elsewhere.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { GitConnection, ManifestPlan } from "../shared/model.js";
import { useFieldDraft } from "../shared/use-field-draft.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { useUnsavedChanges } from "../shared/use-unsaved-changes.js";
import type { PageProps } from "../shell/page-props.js";
import { isEmptyPlan, PlanList } from "./manifest-plan.js";

const GIT_PROVIDERS: readonly [provider: string, label: string][] = [
  ["github", "GitHub"],
  ["gitlab", "GitLab"],
  ["gitea", "Gitea"],
];

const NEW_CONNECTION = {
  provider: "github",
  url: "",
  branch: "main",
  folder: "",
  tagPattern: "",
  prune: false,
  username: "git",
};

interface ConnectionFields {
  provider: string;
  url: string;
  branch: string;
  folder: string;
  /** Pattern of the Git tags whose push publishes actions; empty if no tag publishes actions. */
  tagPattern: string;
  prune: boolean;
  username: string;
  /** New access token for the repository; empty to keep the stored token. */
  token: string;
  /** True if the save should remove the stored access token. */
  shouldRemoveToken: boolean;
}

const connectionToFields = (git: GitConnection | null): ConnectionFields => {
  const { provider, url, branch, folder, tagPattern, prune, username } = git ?? NEW_CONNECTION;
  return {
    provider,
    url,
    branch,
    folder,
    tagPattern: tagPattern ?? "",
    prune,
    username,
    token: "",
    shouldRemoveToken: false,
  };
};

const CONNECTION_TEXT_FIELDS: readonly [
  field: "url" | "branch" | "folder" | "tagPattern" | "username",
  label: string,
  example: string,
][] = [
  ["url", "URL of the repository", "https://github.com/example/shop"],
  ["branch", "Branch that becomes the drafts", "main"],
  ["folder", "Folder of the project", "empty for the root"],
  ["tagPattern", "Tags that publish", "v*"],
  ["username", "User name for the token", "git"],
];

interface ConnectionFormProps {
  connection: GitConnection | null;
  isBusy: boolean;
  setDirty: (isDirty: boolean) => void;
  saveConnection: (fields: ConnectionFields) => Promise<boolean>;
}

function ConnectionForm({ connection, isBusy, setDirty, saveConnection }: ConnectionFormProps) {
  const field = useFieldDraft(connectionToFields(connection), { version: String(connection?.updatedAt) });
  const { draft: fields, setDraft, isDirty, isChangedElsewhere } = field;
  useUnsavedChanges(setDirty, isDirty);
  const changeFields = (part: Partial<ConnectionFields>) => setDraft((old) => ({ ...old, ...part }));
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await saveConnection(fields)) field.markSaved(fields);
  };
  return (
    <form className="binding-form" aria-label="Git repository" onSubmit={(event) => void submit(event)}>
      <ChangedElsewhereNotice label="The connection" field={field} />
      <label>
        Git server
        <select value={fields.provider} onChange={({ target }) => changeFields({ provider: target.value })}>
          {GIT_PROVIDERS.map(([provider, label]) => (
            <option key={provider} value={provider}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {CONNECTION_TEXT_FIELDS.map(([field, label, example]) => (
        <label key={field}>
          {label}
          <input
            autoComplete="off"
            placeholder={example}
            value={fields[field]}
            onChange={({ target }) => changeFields({ [field]: target.value })}
          />
        </label>
      ))}
      <label>
        Access token
        <input
          type="password"
          autoComplete="new-password"
          placeholder={
            connection?.hasToken ? "stored; enter another one to replace it" : "none, for a public repository"
          }
          disabled={fields.shouldRemoveToken}
          value={fields.token}
          onChange={({ target }) => changeFields({ token: target.value })}
        />
      </label>
      {connection?.hasToken && (
        <label className="row">
          <input
            type="checkbox"
            checked={fields.shouldRemoveToken}
            onChange={({ target }) => changeFields({ shouldRemoveToken: target.checked, token: "" })}
          />
          Remove the stored token
        </label>
      )}
      <label className="row">
        <input
          type="checkbox"
          checked={fields.prune}
          onChange={({ target }) => changeFields({ prune: target.checked })}
        />
        Remove parts of the app that the repository does not have; a tag also removes live versions
      </label>
      <p className="row">
        <button type="submit" className="primary" disabled={isBusy || isChangedElsewhere || fields.url.trim() === ""}>
          {connection ? "Save the connection" : "Connect the repository"}
        </button>
      </p>
    </form>
  );
}

function LastPull({ pull }: { pull: NonNullable<GitConnection["lastPull"]> }) {
  const { ref, commit, published, error, at: pulledAt } = pull;
  return (
    <p role="status">
      <span title={formatExactTime(pulledAt)}>{formatAge(pulledAt)}</span>: {ref}
      {commit && (
        <>
          {" "}
          at <code title={commit}>{commit.slice(0, 7)}</code>
        </>
      )}
      {published.length > 0 && `, published ${published.join(", ")}`}
      {error && <span className="fault"> {error}</span>}
    </p>
  );
}

interface WebhookSectionProps {
  url: string;
  /** Secret of the webhook, right after the service has created it; null later, because the service returns it only once. */
  secret: string | null;
  isBusy: boolean;
  renewSecret: () => void;
}

function WebhookSection({ url, secret, isBusy, renewSecret }: WebhookSectionProps) {
  return (
    <>
      <h3>Webhook</h3>
      <p className="hint">
        Add this URL to the repository as a webhook for pushes and tags, with the content type application/json.
      </p>
      <p>
        <code>{url}</code>
      </p>
      {secret !== null && (
        <p role="status">
          Secret, shown only now: <code>{secret}</code>
        </p>
      )}
      <p className="row">
        <button type="button" disabled={isBusy} onClick={renewSecret}>
          New secret
        </button>
      </p>
    </>
  );
}

/** Hook with the data of the Git page, and with the functions that change the connection. */
function useGitConnection({ api, appId, confirm, actions, reloadApps }: PageProps) {
  const { value, fault, isBusy, applyChange } = useResource(createQueryOptions(ReadGitConnection, { appId }));
  const [secret, setSecret] = useState<string | null>(null);
  const [reviewedPull, setReviewedPull] = useState<{ commit: string; plan: ManifestPlan } | null>(null);
  const git = value?.git ?? null;

  const saveConnection = async (allFields: ConnectionFields, newSecret = false): Promise<boolean> => {
    const { tagPattern, token, shouldRemoveToken, ...fields } = allFields;
    const pattern = tagPattern.trim() === "" ? null : tagPattern.trim();
    const data = {
      ...fields,
      tagPattern: pattern,
      newSecret,
      ...((shouldRemoveToken || token !== "") && { token: shouldRemoveToken ? null : token }),
    };
    const response = await applyChange(() =>
      api.request(ConnectGitRepository, { appId, data, ifUpdatedAt: git?.updatedAt ?? null }),
    );
    setReviewedPull(null);
    if (response?.connected.webhookSecret) setSecret(response.connected.webhookSecret);
    return response !== null;
  };
  const disconnectRepository = async () => {
    const text = "Definitions and versions stay. The token and the secret of the webhook are deleted.";
    if (
      !(await confirm({
        title: "Disconnect the repository?",
        explanation: text,
        confirmLabel: "Disconnect",
        isDangerous: true,
      }))
    )
      return;
    await applyChange(() => api.request(DisconnectGitRepository, { appId, ifUpdatedAt: git?.updatedAt ?? null }));
    setSecret(null);
    setReviewedPull(null);
  };
  const reviewPull = async () => {
    setReviewedPull(null);
    const response = await applyChange(() => api.request(PullGitRepository, { appId, plan: true }));
    if (response) setReviewedPull(response.pulled);
  };
  const pullCommit = async () => {
    const response = await applyChange(() =>
      api.request(PullGitRepository, { appId, plan: false, commit: reviewedPull?.commit ?? null }),
    );
    setReviewedPull(null);
    if (response) await Promise.all([actions.reloadActions(), reloadApps()]);
  };
  return {
    isRead: value !== null,
    git,
    fault,
    busy: isBusy,
    secret,
    reviewedPull,
    saveConnection,
    disconnectRepository,
    reviewPull,
    pullCommit,
  };
}

export function GitPage(props: PageProps) {
  const {
    isRead,
    git,
    fault,
    busy,
    secret,
    reviewedPull,
    saveConnection,
    disconnectRepository,
    reviewPull,
    pullCommit,
  } = useGitConnection(props);
  const [isDirty, setFormDirty] = useState(false);
  const plan = reviewedPull?.plan;
  const { setDirty } = props;
  useUnsavedChanges(setDirty, isDirty);
  return (
    <>
      <p className="hint">
        After a push to the branch, the service changes the drafts of this app to those of the commit, all or none. A
        tag that matches publishes the actions of the commit that differ from their live version.
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      {isRead && <ConnectionForm {...{ connection: git, isBusy: busy, saveConnection }} setDirty={setFormDirty} />}
      {git && (
        <>
          <WebhookSection
            {...{ url: git.webhookUrl, secret, isBusy: busy || isDirty }}
            renewSecret={() => void saveConnection(connectionToFields(git), true)}
          />
          <h3>Pull</h3>
          {git.lastPull ? <LastPull pull={git.lastPull} /> : <p className="hint">No pull yet.</p>}
          <p className="row">
            <button type="button" disabled={busy} onClick={() => void reviewPull()}>
              Review changes of {git.branch}
            </button>
            <button
              type="button"
              className="quiet danger-text"
              disabled={busy}
              onClick={() => void disconnectRepository()}
            >
              Disconnect the repository
            </button>
          </p>
          {plan && isEmptyPlan(plan) && <p className="hint">The app has everything of the branch already.</p>}
          {plan && <PlanList plan={plan} label="Changes of the pull" />}
          {plan && !isEmptyPlan(plan) && (
            <p className="row">
              <button type="button" className="primary" disabled={busy} onClick={() => void pullCommit()}>
                Pull
              </button>
              <span className="hint">
                A pull publishes no action. Data sources, settings and alerts have no draft: they change at once.
              </span>
            </p>
          )}
        </>
      )}
    </>
  );
}
