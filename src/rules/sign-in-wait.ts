/** Decides after how many failed sign-ins the next attempt must wait, and for how long. All times are Unix times in milliseconds. */

export const SIGN_IN_FAILURES_BEFORE_WAIT = 10;
export const SIGN_IN_FAILURE_WINDOW_MS = 600_000;
const FIRST_WAIT_MS = 60_000;
const WAIT_MAX_MS = 3_600_000;
/** Milliseconds from the last sign-in attempt until the service deletes the `SignInAttemptState`. */
export const SIGN_IN_ATTEMPT_STATE_LIFETIME_MS = 86_400_000;

/** Sign-in attempts of one subject: a network address, or an account together with a network address. */
export interface SignInAttemptState {
  /** Start times of attempts that failed or have not ended yet, the oldest first. */
  failures: readonly number[];
  /** Number of waits so far. Each wait is twice as long as the one before, up to an hour. */
  level: number;
  blockedUntil: number | null;
}

const computeWaitMs = (level: number): number => Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** level);

/** Returns the time until which the next sign-in attempt must wait; null if it need not wait. */
export const getSignInBlockedUntil = ({ blockedUntil }: SignInAttemptState, now: number): number | null =>
  blockedUntil !== null && blockedUntil > now ? blockedUntil : null;

/**
 * Adds a sign-in attempt, which counts as failed until it succeeds. If there are now ten or more failed attempts within ten minutes, starts
 * a wait.
 */
export function recordSignInAttempt(state: SignInAttemptState, now: number): SignInAttemptState {
  const failures = [...state.failures.filter((failedAt) => failedAt > now - SIGN_IN_FAILURE_WINDOW_MS), now].slice(
    -SIGN_IN_FAILURES_BEFORE_WAIT,
  );
  if (failures.length < SIGN_IN_FAILURES_BEFORE_WAIT) return { failures, level: state.level, blockedUntil: null };
  return { failures, level: state.level + 1, blockedUntil: now + computeWaitMs(state.level) };
}

/** Removes an attempt that succeeded, or that the service could not check. If the attempt started a wait, ends the wait. */
export function removeSignInAttempt(state: SignInAttemptState, attemptedAt: number): SignInAttemptState {
  const failures = state.failures.filter((failure) => failure !== attemptedAt);
  const startedWait = state.blockedUntil === attemptedAt + computeWaitMs(state.level - 1);
  return startedWait ? { failures, level: state.level - 1, blockedUntil: null } : { ...state, failures };
}
