/** Page of the app's stages: lists the apps of its group, promotes another stage to this app after a review, and rolls promotions back. */
import { type FormEvent, lazy, Suspense, useState } from "react";
import { CreateStage, ListStages, PlanPromotion, PromoteStage, RemoveStage, RollbackPromotion } from "../documents.js";
import { usePersonNames } from "../people/people.js";
import { asApiError } from "../shared/api.js";
import { formatAge, formatExactTime } from "../shared/format.js";
import type { ManifestPlan, Promotion, Stage } from "../shared/model.js";
import { useNewValues } from "../shared/use-new-values.js";
import { queryOf, useResource } from "../shared/use-resource.js";
import type { PageProps } from "../shell/page-props.js";
import { hrefOf } from "../shell/place.js";
import { isEmptyPlan, PlanList } from "./manifest-plan.js";

const ItemDiff = lazy(async () => ({ default: (await import("./item-diff.js")).ItemDiff }));

/** Selectable lifetimes of a new stage in hours. The service then deletes the stage; 0 means never. */
const STAGE_LIFETIMES: readonly [hours: number, label: string][] = [
  [0, "Permanent"],
  [24, "Preview, deleted after a day"],
  [168, "Preview, deleted after a week"],
  [744, "Preview, deleted after 31 days"],
];

const getStageLabel = ({ name, appName }: Stage): string => name ?? appName;

interface NewStageProps {
  busy: boolean;
  create: (name: string, expiresInHours: number | null) => Promise<boolean>;
}

function NewStage({ busy, create }: NewStageProps) {
  const { values: name, setValues: setName, clearSaved } = useNewValues("");
  const [hours, setHours] = useState(0);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await create(name.trim(), hours === 0 ? null : hours)) clearSaved(name);
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
      <button type="submit" disabled={busy || name.trim() === ""}>
        Create a stage
      </button>
    </form>
  );
}

/** Promotion that the person reviews before it is sent, with the changes that it would make. */
interface PromotionReview {
  from: Stage;
  plan: ManifestPlan;
  /** Version tag of the app's definitions when the plan was made. The service rejects the promotion if they have changed since. */
  tag: string;
}

interface ReviewPanelProps extends Pick<PageProps, "api" | "app" | "appId"> {
  review: PromotionReview;
  busy: boolean;
  promote: () => void;
  cancel: () => void;
}

function ReviewPanel({ api, app, appId, review: { from, plan }, busy, promote, cancel }: ReviewPanelProps) {
  const [open, setOpen] = useState<string | null>(null);
  return (
    <section aria-labelledby="review">
      <h3 id="review">
        {getStageLabel(from)} to {app.name}
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
              {isOpen && (
                <Suspense fallback={<p className="hint">Loading…</p>}>
                  <ItemDiff {...{ api, item }} fromAppId={from.appId} toAppId={appId} />
                </Suspense>
              )}
            </>
          );
        }}
      />
      <p className="row">
        <button type="button" className="primary" disabled={busy || isEmptyPlan(plan)} onClick={promote}>
          Promote
        </button>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
        <span className="hint">All of it, or nothing. It publishes nothing.</span>
      </p>
    </section>
  );
}

interface StageRowProps {
  stage: Stage;
  appId: number;
  busy: boolean;
  review: () => void;
  remove: () => void;
}

function StageRow({ stage, appId, busy, review, remove }: StageRowProps) {
  const isThis = stage.appId === appId;
  return (
    <li>
      <a className="grow" href={hrefOf({ appId: stage.appId, view: "app", item: "stages" })}>
        {getStageLabel(stage)}
      </a>
      {isThis && <span className="chip">this app</span>}
      {stage.expiresAt !== null && (
        <span className="hint" title={formatExactTime(stage.expiresAt)}>
          deleted {formatAge(stage.expiresAt)}
        </span>
      )}
      {!isThis && (
        <button type="button" disabled={busy} onClick={review}>
          Review changes of {getStageLabel(stage)}
        </button>
      )}
      {!isThis && stage.expiresAt !== null && (
        <button type="button" className="quiet danger-text" disabled={busy} onClick={remove}>
          Delete {getStageLabel(stage)}
        </button>
      )}
    </li>
  );
}

interface PromotionHistoryProps {
  promotions: readonly Promotion[];
  stages: readonly Stage[];
  busy: boolean;
  findPersonName: (userId: number | null) => string | null;
  rollBack: (promotion: Promotion) => void;
}

function PromotionHistory({ promotions, stages, busy, findPersonName, rollBack }: PromotionHistoryProps) {
  const nameOfApp = (id: number | null) => {
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
                {rolledBackTo === null ? `From ${nameOfApp(fromAppId)}` : `Rolled back by promotion ${rolledBackTo}`},{" "}
                {formatAge(createdAt)}
              </summary>
              <PlanList plan={plan} label={`Changes of promotion ${id}`} />
            </details>
            <span className="hint">{findPersonName(userId) ?? "a token"}</span>
            <button type="button" disabled={busy} onClick={() => rollBack(promotion)}>
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
  const { value, fault, busy, change } = useResource(queryOf(ListStages, { appId }));
  const [review, setReview] = useState<PromotionReview | null>(null);
  /** Reason why the page did not send the last promotion; null if there is none. */
  const [notice, setNotice] = useState<string | null>(null);

  const create = async (name: string, expiresInHours: number | null) => {
    const made = await change(() => api.request(CreateStage, { appId, name, expiresInHours }));
    if (made) await reloadApps();
    return made !== null;
  };
  const remove = async (stage: Stage) => {
    const text = "The app, its data and its runs are deleted.";
    if (!(await confirm({ title: `Delete ${getStageLabel(stage)}?`, text, confirmLabel: "Delete", isDangerous: true })))
      return;
    if (await change(() => api.request(RemoveStage, { appId, stageAppId: stage.appId }))) await reloadApps();
  };
  /** Reads the changes that a promotion would make, for the review. Returns true if they could be read. */
  const planPromotion = async (from: Stage): Promise<boolean> => {
    setReview(null);
    setNotice(null);
    const plan = await change(() => api.request(PlanPromotion, { appId, fromAppId: from.appId }));
    if (plan) setReview({ from, plan: plan.planned.plan, tag: plan.planned.tag! });
    return plan !== null;
  };
  const promote = async ({ from, tag }: PromotionReview) => {
    setNotice(null);
    const sent = await change(() =>
      api.request(PromoteStage, { appId, fromAppId: from.appId, ifMatch: [tag] }).catch((error: unknown) => {
        if (asApiError(error).status === "MANIFEST_CHANGED") return "changed" as const;
        throw error;
      }),
    );
    if (sent === "changed" && (await planPromotion(from))) {
      setNotice("Not promoted: the changes are not those that you reviewed. The current ones are listed now.");
    }
    if (sent === null || sent === "changed") return;
    setReview(null);
    await actions.reload();
  };
  const rollBack = async ({ id }: Promotion) => {
    const isLast = value?.promotions[0]?.id === id;
    const text = isLast
      ? "The definitions become what they were before this promotion."
      : "The definitions become what this promotion left.";
    if (
      !(await confirm({
        title: `Roll back promotion ${id}?`,
        text: `${text} Values of settings and data stay.`,
        confirmLabel: "Roll back",
      }))
    )
      return;
    if (await change(() => api.request(RollbackPromotion, { appId, id }))) await actions.reload();
  };
  const cancel = () => {
    setReview(null);
    setNotice(null);
  };
  return {
    value,
    fault: notice ?? fault,
    busy,
    review,
    cancel,
    create,
    remove,
    planPromotion,
    promote,
    rollBack,
  };
}

export function StagesPage(props: PageProps) {
  const { api, app, appId } = props;
  const { value, fault, busy, review, cancel, create, remove, planPromotion, promote, rollBack } = useStages(props);
  const findPersonName = usePersonNames(appId);
  return (
    <>
      <p className="hint">
        Stages are apps with the same definitions. Each has its own settings and data. A promotion brings the
        definitions of another stage to this app.
      </p>
      <NewStage busy={busy} create={create} />
      <p className="fault" role="alert">
        {fault}
      </p>
      <ul className="records" aria-label="Stages">
        {value?.stages.map((stage) => (
          <StageRow
            key={stage.appId}
            {...{ stage, appId, busy }}
            review={() => void planPromotion(stage)}
            remove={() => void remove(stage)}
          />
        ))}
      </ul>
      {review && (
        <ReviewPanel {...{ api, app, appId, review, busy }} promote={() => void promote(review)} cancel={cancel} />
      )}
      <h3>Promotions to this app</h3>
      {value?.promotions.length === 0 && <p className="hint">None yet.</p>}
      {value && (
        <PromotionHistory {...value} {...{ busy, findPersonName }} rollBack={(promotion) => void rollBack(promotion)} />
      )}
    </>
  );
}
