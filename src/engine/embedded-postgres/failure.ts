/** The one error of the embedded PostgreSQL: its message is a whole line for an operator, and holds no secret. */
export class EmbeddedPostgresError extends Error {
  override readonly name = "EmbeddedPostgresError";
}
