/** Decides after how many failed sign-ins a subject must wait, and for how long. Times are Unix time in milliseconds. */

export const FREE_FAILURES = 10;
export const FAILURE_WINDOW_MS = 600_000;
const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 3_600_000;
/** Milliseconds without an attempt after which a subject's failures are forgotten. */
export const FORGOTTEN_AFTER_MS = 86_400_000;

/** Failed attempts of one subject: an account at one network address, or a network address. */
export interface AttemptState {
  /** Times of attempts that failed or have not ended yet, oldest first. */
  failures: readonly number[];
  /** Number of waits so far; each one doubles the next. */
  level: number;
  blockedUntil: number | null;
}

const waitOfLevel = (level: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** level);

/** Returns the time until which the subject must wait; null if it may try now. */
export const blockedUntil = ({ blockedUntil: until }: AttemptState, now: number): number | null =>
  until !== null && until > now ? until : null;

/** Returns the state with one more attempt, which counts as a failure until it succeeds. The tenth failure in ten minutes starts a wait. */
export function addAttempt(state: AttemptState, now: number): AttemptState {
  const failures = [...state.failures.filter((failedAt) => failedAt > now - FAILURE_WINDOW_MS), now].slice(
    -FREE_FAILURES,
  );
  if (failures.length < FREE_FAILURES) return { failures, level: state.level, blockedUntil: null };
  return { failures, level: state.level + 1, blockedUntil: now + waitOfLevel(state.level) };
}

/**
 * Returns the state after the attempt that began at `attemptedAt` has succeeded. The attempt, and the wait that it started, no
 * longer count.
 */
export function removeAttempt(state: AttemptState, attemptedAt: number): AttemptState {
  const failures = state.failures.filter((failure) => failure !== attemptedAt);
  const startedWait = state.blockedUntil === attemptedAt + waitOfLevel(state.level - 1);
  return startedWait ? { failures, level: state.level - 1, blockedUntil: null } : { ...state, failures };
}
