/** The one error of the embedded PostgreSQL: its message is a whole line for an operator, and holds no secret. */
import { StartError } from "../../errors.js";

export class EmbeddedPostgresError extends StartError {
  override readonly name = "EmbeddedPostgresError";
}
