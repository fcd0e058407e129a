import type { Cause } from '../api/schema';

/** A cause and its remediation. */
export function CauseWords({ cause: { headline, remediation } }: { cause: Cause }) {
  return (
    <p className="cause-words">
      <strong>{headline}.</strong> {remediation}
    </p>
  );
}
