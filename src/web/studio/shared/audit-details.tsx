/** Details of an entry of an audit log: labels and values, such as `role editor`. */
import { listAuditDetails } from "./audit-text.js";

interface AuditDetailsProps {
  data: unknown;
  /** Returns the name of a person, or null if it is unknown. */
  nameOf: (userId: number) => string | null;
}

export const AuditDetails = ({ data, nameOf }: AuditDetailsProps) =>
  listAuditDetails(data, nameOf).map(({ label, text }) => (
    <span key={label} className="audit-detail">
      <span className="hint">{label}</span> {text}
    </span>
  ));
