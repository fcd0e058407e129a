import { ProblemAlert } from './ProblemAlert';

/** Why the kinds do not come; they are asked for again by themselves. */
export function KindsAlert({ error }: { error: unknown }) {
  return (
    <div className="stack">
      <ProblemAlert title="Could not load the templates" error={error} />
      <p className="small">Retrying automatically.</p>
    </div>
  );
}
