/**
 * Decides after how many failed sign-ins the next attempt must wait, and for how long. All times are Unix time in
 * milliseconds.
 */

export const FAILURES_BEFORE_WAIT = 10;
export const FAILURE_WINDOW_MS = 600_000;
const FIRST_WAIT_MS = 60_000;
const LONGEST_WAIT_MS = 3_600_000;
/** Time after the last sign-in attempt of a subject after which the service deletes the subject's stored state. */
export const STATE_LIFETIME_MS = 86_400_000;

/** Sign-in attempts of one subject: a network address, or an account together with a network address. */
export interface AttemptState {
  /** Times of sign-in attempts that failed or have not ended yet, the oldest first. */
  failures: readonly number[];
  /** Number of waits so far. Each wait is twice as long as the previous one. */
  level: number;
  blockedUntil: number | null;
}

const waitAfter = (level: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** level);

/** Returns the time until which the subject must not try to sign in; null if it may try now. */
export const blockedUntil = ({ blockedUntil: until }: AttemptState, now: number): number | null =>
  until !== null && until > now ? until : null;

/** Adds an attempt that starts at `now`. It counts as failed until it succeeds. The tenth failed attempt in ten minutes starts a wait. */
export function addAttempt(state: AttemptState, now: number): AttemptState {
  const failures = [...state.failures.filter((failedAt) => failedAt > now - FAILURE_WINDOW_MS), now].slice(
    -FAILURES_BEFORE_WAIT,
  );
  if (failures.length < FAILURES_BEFORE_WAIT) return { failures, level: state.level, blockedUntil: null };
  return { failures, level: state.level + 1, blockedUntil: now + waitAfter(state.level) };
}

/**
 * Removes the attempt that began at `attemptedAt`, because it succeeded. Also ends the wait, if this attempt started it. */
export function removeAttempt(state: AttemptState, attemptedAt: number): AttemptState {
  const failures = state.failures.filter((failure) => failure !== attemptedAt);
  const startedWait = state.blockedUntil === attemptedAt + waitAfter(state.level - 1);
  return startedWait ? { failures, level: state.level - 1, blockedUntil: null } : { ...state, failures };
}
