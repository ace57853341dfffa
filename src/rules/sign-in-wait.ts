/**
 * Decides after how many failed sign-ins the next attempt must wait, and for how long. All times are Unix time in
 * milliseconds.
 */

export const FREE_FAILURES = 10;
export const FAILURE_WINDOW_MS = 600_000;
const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 3_600_000;
/** Time without an attempt after which the stored failures of a subject are deleted. */
export const FORGOTTEN_AFTER_MS = 86_400_000;

/** Failed attempts of one subject: a network address, or an account at one network address. */
export interface AttemptState {
  /** Times of attempts that failed or have not ended yet, oldest first. */
  failures: readonly number[];
  /** Number of waits so far. Each wait is twice as long as the one before. */
  level: number;
  blockedUntil: number | null;
}

const waitOfLevel = (level: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** level);

/** Returns the time until which the subject must wait; null if it may try now. */
export const blockedUntil = ({ blockedUntil: until }: AttemptState, now: number): number | null =>
  until !== null && until > now ? until : null;

/** Adds an attempt, which counts as failed until it succeeds. The tenth failed attempt in ten minutes starts a wait. */
export function addAttempt(state: AttemptState, now: number): AttemptState {
  const failures = [...state.failures.filter((failedAt) => failedAt > now - FAILURE_WINDOW_MS), now].slice(
    -FREE_FAILURES,
  );
  if (failures.length < FREE_FAILURES) return { failures, level: state.level, blockedUntil: null };
  return { failures, level: state.level + 1, blockedUntil: now + waitOfLevel(state.level) };
}

/**
 * Removes the attempt that began at `attemptedAt`, because it succeeded, and the wait that it started.
 */
export function removeAttempt(state: AttemptState, attemptedAt: number): AttemptState {
  const failures = state.failures.filter((failure) => failure !== attemptedAt);
  const startedWait = state.blockedUntil === attemptedAt + waitOfLevel(state.level - 1);
  return startedWait ? { failures, level: state.level - 1, blockedUntil: null } : { ...state, failures };
}
