/**
 * Counts in the database how many requests and tokens an app has used for AI models on the current day (UTC). So the
 * daily limits of an app apply to all processes of the service together.
 */
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { AiError } from "../../rules/ai/failure.js";
import { AI_SETTING_KEY, type AiSetting } from "../../rules/ai/setting.js";

const UTC_DATE_SQL = "(now() AT TIME ZONE 'UTC')::date";
const USAGE_RETENTION_DAYS = 31;

/**
 * Counts a call of the app $1 with $2 estimated tokens. $3 and $4 are the daily limits (null: none). Returns no row if a limit is reached.
 */
const RESERVE_TOKENS = `
  WITH old AS (DELETE FROM ai_usage WHERE app_id = $1 AND day < ${UTC_DATE_SQL} - ${USAGE_RETENTION_DAYS})
  INSERT INTO ai_usage AS known (app_id, day, requests, tokens)
  SELECT $1, ${UTC_DATE_SQL}, 1, $2 WHERE coalesce($3::bigint, 1) > 0 AND coalesce($4::bigint, 1) > 0
  ON CONFLICT (app_id, day) DO UPDATE SET requests = known.requests + 1, tokens = known.tokens + $2
   WHERE ($3::bigint IS NULL OR known.requests < $3) AND ($4::bigint IS NULL OR known.tokens < $4)
  RETURNING day::text AS day`;

const CORRECT_TOKEN_COUNT =
  "UPDATE ai_usage SET tokens = greatest(0, tokens + $3) WHERE app_id = $1 AND day = $2::date RETURNING day";

export class AiUsageRecorder {
  constructor(private readonly options: { db: Db }) {}

  /**
   * Counts a call before the service sends it, with an estimated number of tokens. Returns a function that replaces
   * the estimate by the number of tokens that the call has used.
   * @throws AiError LIMIT if a daily limit is reached
   */
  async reserve(appId: number, expected: number, limits: Pick<AiSetting, "dailyRequests" | "dailyTokens">) {
    const { db } = this.options;
    const { dailyRequests, dailyTokens } = limits;
    const [counted] = await rows<{ day: string }>(db, RESERVE_TOKENS, [appId, expected, dailyRequests, dailyTokens]);
    if (!counted) {
      const dailyLimits = [
        dailyRequests !== null && `${dailyRequests} requests`,
        dailyTokens !== null && `${dailyTokens} tokens`,
      ];
      const limitText = dailyLimits.filter(Boolean).join(" or ");
      const hasZeroLimit = dailyRequests === 0 || dailyTokens === 0;
      const remedy = hasZeroLimit ? "raise the limit that is 0" : "try again after midnight UTC, or raise the limit";
      throw new AiError(
        "LIMIT",
        `the app has reached its daily limit of ${limitText} (setting ${AI_SETTING_KEY}); ${remedy}`,
      );
    }
    return async (executor: SqlClient, used: number): Promise<void> => {
      if (used !== expected) await rows(executor, CORRECT_TOKEN_COUNT, [appId, counted.day, used - expected]);
    };
  }
}
