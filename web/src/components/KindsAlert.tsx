import { ProblemAlert } from './ProblemAlert';

/** Shows why the kinds could not be loaded. The portal retries automatically. */
export function KindsAlert({ error }: { error: unknown }) {
  return (
    <div className="stack">
      <ProblemAlert title="Could not load the templates" error={error} />
      <p className="small">Retrying automatically.</p>
    </div>
  );
}
