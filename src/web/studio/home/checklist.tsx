/** Checklist for a new app. A step is marked as done when the service's data shows it, such as a first run; the person cannot mark it. */
import Circle from "icon:circle";
import CircleCheck from "icon:circle-check";
import type { ActionList, App } from "../shared/model.js";
import { createHref, type StudioRoute } from "../shell/studio-route.js";
import type { HomeData } from "./read-home.js";

interface ChecklistStep {
  label: string;
  explanation: string;
  isDone: boolean;
  to: Pick<StudioRoute, "view"> & Partial<StudioRoute>;
}

const AUTOMATIC_TRIGGERS = ["schedule", "http", "log", "analytics"];

/** Returns the steps of the checklist, in the order in which a new user does them. */
function createChecklistSteps(app: App, list: ActionList, { anyRun, editorData }: HomeData): ChecklistStep[] {
  const hasAutomaticTrigger = list.actions.some(({ triggers }) =>
    triggers.some(({ trigger }) => AUTOMATIC_TRIGGERS.includes(trigger)),
  );
  return [
    {
      label: "Write an action",
      explanation: "A JavaScript function that runs on the server or in the browser.",
      isDone: list.total > 0,
      to: { view: "actions", item: "new" },
    },
    {
      label: "Run it",
      explanation: "Open the action and press Run. The result and the console appear below the code.",
      isDone: anyRun.runs.length > 0,
      to: { view: "actions" },
    },
    {
      label: "Publish it",
      explanation: "Live pages, schedules and HTTP requests run the live version.",
      isDone: app.isPublished && list.published.length > 0,
      to: { view: "actions" },
    },
    {
      label: "Start it without a click",
      explanation: "Add a schedule, an HTTP trigger or an event to the action.",
      isDone: hasAutomaticTrigger,
      to: { view: "actions" },
    },
    {
      label: "Get an alert when it fails",
      explanation: "By e-mail, Slack or webhook.",
      isDone: (editorData?.alerts.length ?? 0) > 0,
      to: { view: "alerts" },
    },
    {
      label: "Invite a person",
      explanation: "As an editor, an operator or a reader.",
      isDone: (editorData?.members.length ?? 0) > 1,
      to: { view: "app", item: "people" },
    },
  ];
}

export function Checklist({ app, list, home }: { app: App; list: ActionList; home: HomeData }) {
  const steps = createChecklistSteps(app, list, home);
  const doneCount = steps.filter(({ isDone }) => isDone).length;
  if (doneCount === steps.length) return null;
  return (
    <section className="card checklist" aria-labelledby="getting-started">
      <div className="card-head">
        <h2 id="getting-started">Getting started</h2>
        <span className="hint">
          {doneCount} of {steps.length} done
        </span>
      </div>
      <ol>
        {steps.map(({ label, explanation, isDone, to }) => (
          <li key={label} className={isDone ? "done" : ""}>
            {isDone ? <CircleCheck size={18} aria-hidden /> : <Circle size={18} aria-hidden />}
            <div>
              <a href={createHref({ appId: app.id, ...to })}>{label}</a>
              <span className="unseen">{isDone ? "done" : "to do"}</span>
              {!isDone && <p className="hint">{explanation}</p>}
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
