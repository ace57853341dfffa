/** Details of an entry of an audit log: labels and values, such as `role editor`. */
import { listAuditDetails } from "./audit-text.js";

interface AuditDetailsProps {
  data: unknown;
  /** Returns the name of a person, or null if it is unknown. */
  getPersonName: (userId: number) => string | null;
}

export const AuditDetails = ({ data, getPersonName }: AuditDetailsProps) =>
  listAuditDetails(data, getPersonName).map(({ label, text }) => (
    <span key={label} className="audit-detail">
      <span className="hint">{label}</span> {text}
    </span>
  ));
