import type { OnDeletion } from '../api/schema';
import { count, toLabel } from '../kinds/format';

/**
 * The resources that a deletion deletes and keeps, as reported by the function. Older schema
 * revisions do not report them.
 */
export function DeletionPlan({ plan }: { plan: OnDeletion | null | undefined }) {
  if (!plan)
    return <p>The environment’s resources are deleted. Its template lists the kept resources.</p>;
  const { deletes, keeps } = plan;
  const withData = deletes.filter(({ hasData }) => hasData);
  const others = deletes.length - withData.length;
  return (
    <>
      {withData.length > 0 && (
        <Resources
          title="Deleted with all data"
          all={withData.map((one) => ({ ...one, title: toLabel(one.slot) }))}
        />
      )}
      {others > 0 && (
        <p>
          {withData.length > 0
            ? `Also deleted: ${count(others, 'other resource')}.`
            : `Deleted: ${count(others, 'resource')}.`}
        </p>
      )}
      {keeps.length > 0 && <KeptResources plan={plan} />}
      {deletes.length + keeps.length === 0 && <p>No resource has been created yet.</p>}
    </>
  );
}

/** The resources that stay when the environment is deleted. */
export function KeptResources({ plan: { deletes, keeps } }: { plan: OnDeletion }) {
  // After a resource is deleted, another object of it may stay, for example a snapshot.
  const isLeft = (slot: string) => deletes.some((one) => one.slot === slot);
  const all = keeps.map((one) => ({
    ...one,
    title: isLeft(one.slot) ? `${toLabel(one.kind)} of ${one.slot}` : toLabel(one.slot),
  }));
  return <Resources title="Kept, and billed while it exists" all={all} />;
}

interface Listed {
  slot: string;
  kind: string;
  title: string;
  name?: string | null;
  until?: string | null;
}

function Resources({ title, all }: { title: string; all: readonly Listed[] }) {
  return (
    <div>
      <p>{title}:</p>
      <ul aria-label={title}>
        {all.map((one) => (
          <li key={`${one.slot} ${one.kind}`}>
            {one.title}
            {one.name && (
              <>
                {' '}
                <code>{one.name}</code>
              </>
            )}
            {one.until && `, until ${one.until}`}
          </li>
        ))}
      </ul>
    </div>
  );
}
