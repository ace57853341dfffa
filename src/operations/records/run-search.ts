/**
 * Whether a run holds a text: what its readers may read of it, and nothing else. A payload counts as its log entry says it, where
 * secrets are masked; looked for in the run's own it would tell whoever searches what they are. Knows SQL alone.
 */

/** Of an entry or payload beyond this, the text is not looked through: a result may be megabytes. */
const ENTRY_MAX_BYTES = 64 * 1024;
/** A run's first lines; most print less. */
const LINES_LOOKED_THROUGH = 200;

const holds = (text: string, word: string) => `strpos(lower(${text}), lower(${word})) > 0`;

/**
 * A condition on the row `run`, which holds every word of the search.
 * @param word SQL of one word as a person wrote it
 * @param inJson SQL of the same as a JSON text spells it
 */
export function searchCondition(word: string, inJson: string): string {
  const own = "svc_run_payload(run.payload, run.event_id)";
  return `(
    EXISTS (SELECT FROM execution_log entry
             WHERE entry.run_id = run.id AND entry.bytes <= ${ENTRY_MAX_BYTES} AND ${holds("entry.data::text", inJson)})
    OR EXISTS (SELECT FROM execution_log entry
                WHERE entry.run_id = run.id AND entry.payload_at IS NOT NULL
                  AND coalesce(run.payload_bytes, 0) <= ${ENTRY_MAX_BYTES} AND ${holds(own, inJson)})
    OR EXISTS (SELECT FROM unnest(run.hosts) AS host WHERE ${holds("host", word)})
    OR EXISTS (SELECT FROM (SELECT text FROM console_line WHERE run_id = run.id ORDER BY seq
                             LIMIT ${LINES_LOOKED_THROUGH}) AS line WHERE ${holds("text", word)}))`;
}
