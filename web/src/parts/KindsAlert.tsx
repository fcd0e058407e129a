import { ProblemAlert } from './ProblemAlert';

/** Why the kinds do not come; they are asked for again by themselves. */
export function KindsAlert({ error }: { error: unknown }) {
  return (
    <div className="stack">
      <ProblemAlert title="What can be made here cannot be read" error={error} />
      <p className="small">Another attempt is made by itself, again and again.</p>
    </div>
  );
}
