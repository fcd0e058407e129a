import type { Environment } from '../api/schema';
import { groupOf, known } from '../kinds/known';
import { twinsAtom } from '../state/session';
import { useValue } from '../state/useValue';

/** What people call an environment's kind; where two groups serve one that is called so, with its group. */
export function KindName({ of: { kind, apiVersion } }: { of: Pick<Environment, 'kind' | 'apiVersion'> }) {
  const { title } = known(kind);
  const isTwin = useValue(twinsAtom, (twins) => twins.has(title));
  return (
    <>
      {title}
      {isTwin && (
        <>
          {' '}
          <span className="whole-word">({groupOf(apiVersion)})</span>
        </>
      )}
    </>
  );
}
