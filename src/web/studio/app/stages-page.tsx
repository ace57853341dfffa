/**
 * Page of the app's stages, which are apps with the same definitions, such as a test app. Lists the stages, promotes
 * one of them to this app after a review, and rolls promotions back.
 */
import { type FormEvent, useState } from "react";
import { CreateStage, ListStages, PlanPromotion, PromoteStage, RemoveStage, RollbackPromotion } from "../documents.js";
import { usePersonNames } from "../people/people.js";
import { asApiError } from "../shared/api.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { ManifestPlan, Promotion, Stage } from "../shared/model.js";
import { useNewResourceForm } from "../shared/use-new-values.js";
import { createQueryOptions, useResource } from "../shared/use-resource.js";
import { createLazyPart } from "../shell/lazy-part.js";
import type { PageProps } from "../shell/page-props.js";
import { createHref } from "../shell/studio-route.js";
import { isEmptyPlan, PlanList } from "./manifest-plan.js";

const ItemDiff = createLazyPart(
  async () => (await import("./item-diff.js")).ItemDiff,
  <p className="hint">Loading…</p>,
);

/** Hours that a person can choose as lifetime of a new stage. At the end, the service deletes the stage; 0 means never. */
const STAGE_LIFETIMES: readonly [hours: number, label: string][] = [
  [0, "Permanent"],
  [24, "Preview, deleted after a day"],
  [168, "Preview, deleted after a week"],
  [744, "Preview, deleted after 31 days"],
];

const getStageLabel = ({ name, appName }: Stage): string => name ?? appName;

interface NewStageFormProps {
  isBusy: boolean;
  createStage: (name: string, expiresInHours: number | null) => Promise<boolean>;
}

function NewStageForm({ isBusy, createStage }: NewStageFormProps) {
  const { values: name, setValues: setName, clearSaved } = useNewResourceForm("");
  const [hours, setHours] = useState(0);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await createStage(name.trim(), hours === 0 ? null : hours)) clearSaved(name);
  };
  return (
    <form className="row labelled" onSubmit={(event) => void submit(event)}>
      <label>
        <span>Name</span>
        <input
          aria-label="Name of the new stage"
          placeholder="staging"
          autoComplete="off"
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
      </label>
      <label>
        <span>Lifetime</span>
        <select value={hours} onChange={({ target }) => setHours(Number(target.value))}>
          {STAGE_LIFETIMES.map(([lifetimeHours, label]) => (
            <option key={lifetimeHours} value={lifetimeHours}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" disabled={isBusy || name.trim() === ""}>
        Create a stage
      </button>
    </form>
  );
}

/** Promotion that the person reviews before Studio sends it, with the plan of its changes. */
interface PromotionReview {
  sourceStage: Stage;
  plan: ManifestPlan;
  /** Tag of the app's state for which the plan was made. The service rejects the promotion if the app has changed since. */
  versionTag: string;
}

interface ReviewPanelProps extends Pick<PageProps, "api" | "app" | "appId"> {
  review: PromotionReview;
  isBusy: boolean;
  promoteStage: () => void;
  cancelReview: () => void;
}

function ReviewPanel({
  api,
  app,
  appId,
  review: { sourceStage, plan },
  isBusy,
  promoteStage,
  cancelReview,
}: ReviewPanelProps) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <section aria-labelledby="review">
      <h3 id="review">
        {getStageLabel(sourceStage)} to {app.name}
      </h3>
      {isEmptyPlan(plan) && <p className="hint">This app has everything already.</p>}
      <PlanList
        plan={plan}
        label="Changes of the promotion"
        renderDetails={(item, verb) => {
          const key = `${verb} ${item.kind} ${item.name}`;
          const isOpen = open === key;
          return (
            <>
              <button
                type="button"
                className="link"
                aria-expanded={isOpen}
                onClick={() => setOpen(isOpen ? null : key)}
              >
                Difference of {item.name}
              </button>
              {isOpen && <ItemDiff {...{ api, planItem: item }} fromAppId={sourceStage.appId} toAppId={appId} />}
            </>
          );
        }}
      />
      <p className="row">
        <button type="button" className="primary" disabled={isBusy || isEmptyPlan(plan)} onClick={promoteStage}>
          Promote
        </button>
        <button type="button" onClick={cancelReview}>
          Cancel
        </button>
        <span className="hint">A promotion makes all of these changes or none. It publishes nothing.</span>
      </p>
    </section>
  );
}

interface StageRowProps {
  stage: Stage;
  appId: number;
  isBusy: boolean;
  reviewPromotion: () => void;
  removeStage: () => void;
}

function StageRow({ stage, appId, isBusy, reviewPromotion, removeStage }: StageRowProps) {
  const isOpenApp = stage.appId === appId;
  return (
    <li>
      <a className="grow" href={createHref({ appId: stage.appId, view: "app", item: "stages" })}>
        {getStageLabel(stage)}
      </a>
      {isOpenApp && <span className="chip">this app</span>}
      {stage.expiresAt !== null && (
        <span className="hint" title={formatExactTime(stage.expiresAt)}>
          deleted {formatAge(stage.expiresAt, "within a minute")}
        </span>
      )}
      {!isOpenApp && (
        <button type="button" disabled={isBusy} onClick={reviewPromotion}>
          Review changes of {getStageLabel(stage)}
        </button>
      )}
      {!isOpenApp && stage.expiresAt !== null && (
        <button type="button" className="quiet danger-text" disabled={isBusy} onClick={removeStage}>
          Delete {getStageLabel(stage)}
        </button>
      )}
    </li>
  );
}

interface PromotionHistoryProps {
  promotions: readonly Promotion[];
  stages: readonly Stage[];
  isBusy: boolean;
  findPersonName: (userId: number | null) => string | null;
  rollBack: (promotion: Promotion) => void;
}

function PromotionHistory({ promotions, stages, isBusy, findPersonName, rollBack }: PromotionHistoryProps) {
  const getAppName = (id: number | null) => {
    const stage = stages.find(({ appId }) => appId === id);
    return stage ? getStageLabel(stage) : `app ${id}`;
  };
  return (
    <ul className="records" aria-label="Promotions to this app">
      {promotions.map((promotion) => {
        const { id, fromAppId, rolledBackTo, userId, createdAt, plan } = promotion;
        return (
          <li key={id}>
            <details className="grow">
              <summary>
                {rolledBackTo === null ? `From ${getAppName(fromAppId)}` : `By “Roll back ${rolledBackTo}”`},{" "}
                {formatAge(createdAt)}
              </summary>
              <PlanList plan={plan} label={`Changes of promotion ${id}`} />
            </details>
            <span className="hint">{findPersonName(userId) ?? "a token"}</span>
            <button type="button" disabled={isBusy} onClick={() => rollBack(promotion)}>
              Roll back {id}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** Hook with the data of the stages page, and with the functions that change it. */
function useStages({ api, appId, confirm, actions, reloadApps }: PageProps) {
  const { value, fault, isBusy, applyChange } = useResource(createQueryOptions(ListStages, { appId }));
  const [review, setReview] = useState<PromotionReview | null>(null);
  /** Message if the service rejected the last promotion because the reviewed changes were outdated; otherwise null. */
  const [notice, setNotice] = useState<string | null>(null);

  const createStage = async (name: string, expiresInHours: number | null) => {
    const response = await applyChange(() => api.request(CreateStage, { appId, name, expiresInHours }));
    if (response) await reloadApps();
    return response !== null;
  };
  const removeStage = async (stage: Stage) => {
    const text = "The app, its data and its runs are deleted.";
    if (
      !(await confirm({
        title: `Delete ${getStageLabel(stage)}?`,
        explanation: text,
        confirmLabel: "Delete",
        isDangerous: true,
      }))
    )
      return;
    if (await applyChange(() => api.request(RemoveStage, { appId, stageAppId: stage.appId }))) await reloadApps();
  };
  /** Reads the changes that a promotion would make, and opens their review. Returns false if they cannot be read. */
  const planPromotion = async (sourceStage: Stage): Promise<boolean> => {
    setReview(null);
    setNotice(null);
    const plan = await applyChange(() => api.request(PlanPromotion, { appId, fromAppId: sourceStage.appId }));
    if (plan) setReview({ sourceStage, plan: plan.planned.plan, versionTag: plan.planned.tag! });
    return plan !== null;
  };
  const promoteStage = async ({ sourceStage, versionTag }: PromotionReview) => {
    setNotice(null);
    const response = await applyChange(() =>
      api
        .request(PromoteStage, { appId, fromAppId: sourceStage.appId, ifMatch: [versionTag] })
        .catch((error: unknown) => {
          if (asApiError(error).status === "MANIFEST_CHANGED") return "changed" as const;
          throw error;
        }),
    );
    if (response === "changed" && (await planPromotion(sourceStage))) {
      setNotice(
        "Not promoted: the changes are no longer those that you reviewed. The list now shows the current changes.",
      );
    }
    if (response === null || response === "changed") return;
    setReview(null);
    await actions.reloadActions();
  };
  const rollBack = async ({ id }: Promotion) => {
    const isLast = value?.promotions[0]?.id === id;
    const text = isLast
      ? "The definitions become what they were before this promotion."
      : "The definitions become what they were after this promotion.";
    if (
      !(await confirm({
        title: `Roll back promotion ${id}?`,
        explanation: `${text} Values of settings and data stay.`,
        confirmLabel: "Roll back",
      }))
    )
      return;
    if (await applyChange(() => api.request(RollbackPromotion, { appId, id }))) await actions.reloadActions();
  };
  const cancelReview = () => {
    setReview(null);
    setNotice(null);
  };
  return {
    value,
    fault: notice ?? fault,
    busy: isBusy,
    review,
    cancelReview,
    createStage,
    removeStage,
    planPromotion,
    promoteStage,
    rollBack,
  };
}

export function StagesPage(props: PageProps) {
  const { api, app, appId } = props;
  const { value, fault, busy, review, cancelReview, createStage, removeStage, planPromotion, promoteStage, rollBack } =
    useStages(props);
  const findPersonName = usePersonNames(appId);
  return (
    <>
      <p className="hint">
        Stages are apps with the same definitions. Each has its own settings and data. A promotion brings the
        definitions of another stage to this app.
      </p>
      <NewStageForm isBusy={busy} createStage={createStage} />
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records" aria-label="Stages">
        {value?.stages.map((stage) => (
          <StageRow
            key={stage.appId}
            {...{ stage, appId, isBusy: busy }}
            reviewPromotion={() => void planPromotion(stage)}
            removeStage={() => void removeStage(stage)}
          />
        ))}
      </ul>
      {review && (
        <ReviewPanel
          {...{ api, app, appId, review, isBusy: busy }}
          promoteStage={() => void promoteStage(review)}
          cancelReview={cancelReview}
        />
      )}
      <h3>Promotions to this app</h3>
      {value?.promotions.length === 0 && <p className="hint">None yet.</p>}
      {value && (
        <PromotionHistory
          {...value}
          {...{ isBusy: busy, findPersonName }}
          rollBack={(promotion) => void rollBack(promotion)}
        />
      )}
    </>
  );
}
