/** Callers that send requests to a service one after the other, and count the responses. */

/** Time limit of a request in milliseconds. */
const ANSWER_LIMIT_MS = 60_000;

export interface ResponseCounts {
  /** Number of responses by HTTP code and the body's `status`, such as `503 OVERLOADED`. `unreachable`: requests without a response. */
  counts: Record<string, number>;
  /** Number of 503 responses without Retry-After. */
  withoutRetryAfter: number;
  /** Run IDs in the responses. */
  acknowledged: number[];
}

export const createResponseCounts = (): ResponseCounts => ({ counts: {}, withoutRetryAfter: 0, acknowledged: [] });

export interface CallTarget {
  /** Called before each request, because a restarted process may have another URL. */
  url: () => string;
  appId: number;
  token: string;
}

interface Body {
  status?: string;
  runId?: number;
  result?: unknown;
}

async function call(
  target: CallTarget,
  answers: ResponseCounts,
  method: string,
  path: string,
  body?: unknown,
): Promise<Body> {
  const response = await fetch(target.url() + path, {
    method,
    headers: { "auth-token": target.token, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWER_LIMIT_MS),
  }).catch((cause: Error) => {
    throw new Error(`${method} ${path} was not answered: ${cause.message}`, { cause });
  });
  const answer = (await response.json()) as Body;
  const key = `${response.status} ${answer.status ?? ""}`.trim();
  answers.counts[key] = (answers.counts[key] ?? 0) + 1;
  if (response.status === 503 && !response.headers.has("retry-after")) answers.withoutRetryAfter += 1;
  if (answer.runId !== undefined) answers.acknowledged.push(answer.runId);
  return answer;
}

/** Type of the log event that starts the action `on-event` of CALLED_ACTIONS. */
export const EVENT = "dataSource.entry.create";

/** Actions that the requests of `createRequests` use. They must be published in the app. */
export const CALLED_ACTIONS = [
  { name: "subject", triggers: [{ trigger: "manual" as const }] },
  { name: "on-event", triggers: [{ trigger: "log" as const, where: { type: EVENT } }] },
];

/** Returns functions that each send one request. Those in `runs` start runs; those in `others` only read and write data. */
export function createRequests(target: CallTarget, answers: ResponseCounts) {
  const { appId } = target;
  const actions = `/v3/apps/${appId}/actions`;
  const runWithResult = () => call(target, answers, "POST", `${actions}/subject/runWithResult`, {});
  const send = (type: string) => call(target, answers, "POST", `/v1/apps/${appId}/logs`, { type, data: { n: 1 } });
  return {
    runWithResult,
    runs: [() => call(target, answers, "POST", `${actions}/subject/run`, {}), runWithResult, () => send(EVENT)],
    others: [
      () => send("dataSource.entry.update"),
      () => call(target, answers, "GET", actions),
      () => call(target, answers, "POST", `/v1/apps/${appId}/settings`, { title: "x".repeat(200) }),
    ],
  };
}
